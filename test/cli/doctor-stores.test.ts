/** `kvrelay doctor` on stores: each check fails for its cause, and passes without it. */
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import { createWorker } from '../../src/worker.ts';
import { bodyOf, wireBatch } from '../support/cache-batches.ts';
import { freePorts } from '../support/free-ports.ts';
import { jsonAnswer, startHttpStub } from '../support/http-stub.ts';
import { MooncakeMasterStub } from '../support/mooncake-master-stub.ts';
import { configOf } from '../support/worker-config.ts';
import { APART, diagnose } from './diagnosis.ts';

const ALONE = ['--engine', 'none', '--seconds', '4'];
const states = ['mooncake_store', 'mooncake_master', 'lmcache_stream', 'lmcache_bridge'] as const;

test('stores that are there pass, those that are not given are skipped', async () => {
  const master = await MooncakeMasterStub.start();
  const store = ['--mooncake-endpoint', master.endpoint, '--mooncake-master', master.url];
  const found = await diagnose([...ALONE, ...APART, ...store]);
  expect(states.map((name) => found.of(name).state)).toEqual(['ok', 'ok', 'skipped', 'skipped']);
  expect(found.of('lmcache_endpoint').state).toBe('skipped');
  expect(found.of('lmcache_forward').state).toBe('skipped');
  master.status = { enabled: false };
  const mute = (await diagnose([...ALONE, ...APART, ...store])).of('mooncake_master');
  expect([mute.state, mute.remedy]).toEqual([
    'fail',
    expect.stringContaining('--enable_kv_events'),
  ]);
});

test('stores where nobody listens fail, each with its flag', async () => {
  const port = await freePorts(2);
  const at = `tcp://127.0.0.1:${port}`;
  const lmcache = ['--lmcache-bridge', at, '--lmcache-stream', at, '--lmcache-stream-models', 'm'];
  const mooncake = ['--mooncake-endpoint', at, '--mooncake-master', `http://127.0.0.1:${port}`];
  const found = await diagnose([...ALONE, ...APART, ...lmcache, ...mooncake]);
  expect(states.map((name) => found.of(name).state)).toEqual(states.map(() => 'fail'));
  expect(found.of('lmcache_stream').remedy).toContain('--lmcache-stream');
  expect(found.of('mooncake_store').text).toContain('nobody listens there');
});

test("the endpoint for LMCache's servers: free, taken, and what stands behind it", async () => {
  const port = await freePorts(1);
  const behind = await startHttpStub({ '/healthz': jsonAnswer({ status: 'healthy' }) });
  const listen = ['--lmcache-coordinator-listen', `127.0.0.1:${port}`];
  const forward = ['--lmcache-coordinator-forward', behind.address];
  const free = await diagnose([...ALONE, ...APART, ...listen, ...forward]);
  expect(free.of('lmcache_endpoint').text).toBe(`127.0.0.1:${port} can be bound`);
  expect(free.of('lmcache_forward').state).toBe('ok');

  const strange = await startHttpStub({ '/healthz': jsonAnswer({ ok: true }) });
  const taken = ['--lmcache-coordinator-listen', behind.address];
  const other = ['--lmcache-coordinator-forward', strange.address];
  const wrong = await diagnose([...ALONE, ...APART, ...taken, ...other]);
  expect(wrong.of('lmcache_endpoint').text).toContain('another service has it');
  expect(wrong.of('lmcache_forward').text).toContain('is no coordinator');
});

test('where a relay runs, whether servers post to it', async () => {
  const port = await freePorts(2);
  const listen = ['--lmcache-coordinator-listen', `127.0.0.1:${port}`];
  const http = ['--http', `127.0.0.1:${port + 1}`, '--plane-endpoint', 'tcp://127.0.0.1:0'];
  const config = configOf('--engine', 'none', ...listen, ...http);
  const worker = createWorker(config, {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const silent = (await diagnose([...ALONE, ...listen, ...http])).of('lmcache_endpoint');
  expect([silent.state, silent.remedy]).toEqual([
    'warn',
    expect.stringContaining('--coordinator-url'),
  ]);
  await fetch(`http://127.0.0.1:${port}/events`, { method: 'POST', body: bodyOf(wireBatch(1)) });
  const heard = (await diagnose([...ALONE, ...listen, ...http])).of('lmcache_endpoint');
  expect([heard.state, heard.text]).toEqual(['ok', expect.stringContaining('heard of it')]);
});
