/** The steps in which the channel record of worker load is written and withdrawn. */
import { expect, test } from 'vitest';
import type { DiscoveryKey } from '../../../src/protocol/discovery-keys.ts';
import { type ChannelTransport, channelRecord } from '../../../src/protocol/discovery-records.ts';
import type { Discovery } from '../../../src/router/discovery/discovery.ts';
import { LoadAnnouncer } from '../../../src/router/load/load-announcer.ts';

const endpoint = { namespace: 'n', component: 'c', endpoint: 'e' };
const mark = { host: 'h', engineEndpoint: 'tcp://e:1' };
const NATS: ChannelTransport = { kind: 'nats' };
const KEY = 'namespace/n/component/c/endpoint/e/topic/kv_metrics/ff';

function rig(channel: ChannelTransport | null, standing: ReadonlyMap<string, string> = new Map()) {
  const steps: string[] = [];
  const step =
    (sign: string) =>
    async ({ key }: DiscoveryKey): Promise<void> =>
      void steps.push(`${sign} ${key}`);
  const discovery: Discovery = {
    kind: 'etcd',
    isAvailable: true,
    isSettled: true,
    start: async () => undefined,
    put: step('+'),
    withdraw: step('-'),
    evict: step('x'),
    list: async () => standing,
    watch: () => undefined,
    onLost: () => undefined,
    stop: async () => undefined,
  };
  const load = { dpRank: 0, engineEndpoint: mark.engineEndpoint, publisherId: 255, channel };
  return { steps, announcer: new LoadAnnouncer({ load, discovery, endpoint, host: 'h' }) };
}

test('it is written once for a worker, written anew for the next one, and goes with the last', async () => {
  const { steps, announcer } = rig(NATS);
  await announcer.serve(null);
  expect(steps).toEqual([]);
  await announcer.serve(1n);
  await announcer.serve(1n);
  expect(steps.splice(0)).toEqual([`+ ${KEY}`]);
  await announcer.serve(2n);
  expect(steps.splice(0)).toEqual([`- ${KEY}`, `+ ${KEY}`]);
  await announcer.serve(null);
  expect(steps.splice(0)).toEqual([`- ${KEY}`]);
});

test('what the backend lost is written anew, where there is something', async () => {
  const { steps, announcer } = rig(NATS);
  announcer.renew();
  await announcer.serve(null);
  expect(steps).toEqual([]);
  await announcer.serve(1n);
  announcer.renew();
  await announcer.serve(1n);
  expect(steps).toEqual([`+ ${KEY}`, `- ${KEY}`, `+ ${KEY}`]);
});

test('a plane that needs no channel record gets none', async () => {
  const { steps, announcer } = rig(null);
  await announcer.serve(1n);
  await announcer.serve(null);
  expect(steps).toEqual([]);
});

test('a leftover of ours goes before ours stands', async () => {
  const left = (workerId: bigint, publisherId: number) => {
    const source = { endpoint, workerId, dpRank: 0, publisherId };
    const { key, value } = channelRecord(source, mark, NATS, 'kv_metrics');
    return [key, value] as const;
  };
  const { steps, announcer } = rig(NATS, new Map([left(1n, 16), left(2n, 17)]));
  await announcer.serve(1n);
  expect(steps).toEqual([`x ${KEY.replace(/ff$/, '10')}`, `+ ${KEY}`]);
});
