import { expect, test } from 'vitest';
import { notYetSettings } from '../../src/config/not-yet.ts';
import { fileKeyOf } from '../../src/config/settings-table.ts';
import { load, refusal } from './loading.ts';

test.each(notYetSettings.map((setting) => [setting.flag ?? setting.environment, setting] as const))(
  '%s is refused from every source, never ignored',
  (_, { flag, environment, remedy }) => {
    const refused = (name: string): RegExp =>
      new RegExp(`^${name} '1' is not supported yet; allowed: `);
    if (flag !== null) {
      expect(refusal(() => load([flag, '1']))).toMatch(refused(flag));
      expect(refusal(() => load([flag]))).toContain(`${flag} is not supported yet;`);
      const readFile = () => JSON.stringify({ [fileKeyOf(flag)]: '1' });
      const line = refusal(() => load(['--config', 'f.json'], { readFile }));
      expect(line).toMatch(refused(`${fileKeyOf(flag)} in f.json`));
    }
    if (environment === null) return;
    const line = refusal(() => load([], { env: { [environment]: '1' } }));
    expect(line).toMatch(refused(environment));
    expect(line.endsWith(remedy)).toBe(true);
    // An empty variable asks for nothing.
    expect(load([], { env: { [environment]: '' } }).warnings).toEqual([]);
  },
);

test.each([
  [['--engine-sockets', 'per-rank'], {}],
  [[], { DYN_ZMQ_BROKER_ENABLED: 'false' }],
  [[], { DYN_RESPONSE_PLANE: 'tcp' }],
  [[], { KVRELAY_CLEAR_ON_STOP: '0' }],
])('what asks for what already happens passes: %j %j', (argv, env) => {
  expect(load(argv, { env }).warnings).toEqual([]);
});

test('a misspelt KVRELAY variable is said, a Kubernetes service link is not', () => {
  const env = {
    KVRELAY_BLOCKSIZE: '16',
    KVRELAY_SERVICE_HOST: '10.0.0.1',
    KVRELAY_SERVICE_PORT_HTTP: '80',
    KVRELAY_PORT: 'tcp://10.0.0.1:80',
    KVRELAY_PORT_80_TCP_ADDR: '10.0.0.1',
  };
  expect(load([], { env }).warnings).toEqual([
    'KVRELAY_BLOCKSIZE is no setting of kvrelay and has no effect: check the spelling',
  ]);
});
