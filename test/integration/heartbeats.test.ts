/** Heartbeats of a whole relay: a router that lost the end of a burst finds out, and gets it. */
import { expect, onTestFinished, test } from 'vitest';
import { sourceRecord } from '../../src/protocol/discovery-records.ts';
import { DiscoveryPlace } from '../support/discovery-place.ts';
import { FollowingRouter, heldByNewcomer, query } from '../support/relay-queries.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, St } from '../support/trials.ts';
import { scaled } from '../support/whole.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function makePlace(): DiscoveryPlace {
  const place = new DiscoveryPlace();
  onTestFinished(() => place.close());
  return place;
}

async function startIn(place: DiscoveryPlace, ...flags: string[]): Promise<SocketTrial> {
  const trial = await SocketTrial.start({ flags: [...place.flags, ...flags] });
  await trial.until(() => trial.worker.ready().ready);
  return trial;
}

test('heartbeat: a router that lost the last message sees a hole within a second, and repairs it', async () => {
  const trial = await startIn(makePlace());
  const stores = [101, 102, 103].map((hash, sequence) => f(sequence, [St(hash)]));
  for (const frames of stores) await trial.send(frames);
  await trial.output(3);
  const quietSinceMs = performance.now();
  const router = new FollowingRouter();
  for (const event of trial.events().slice(0, 2)) expect(router.take(event)).toBe(true);

  expect((await trial.output(4))[3]).toBe('R#4()');
  expect(performance.now() - quietSinceMs).toBeLessThan(1500);
  const heartbeat = trial.events()[3];
  expect(heartbeat !== undefined && router.take(heartbeat)).toBe(false);
  const answer = await query(trial.worker.status(), router.cursor + 1);
  expect([answer.kind, answer.lastEventId]).toEqual(['Events', 4]);
  router.believe(answer);
  expect(router.held).toEqual(['101', '102', '103']);
  expect(await heldByNewcomer(trial.worker.status())).toEqual(router.held);
  expect(router.cursor).toBe(4);
});

test('a quiet rank has three heartbeats at most, which count apart from its events', {
  timeout: 60_000,
}, async () => {
  const trial = await startIn(makePlace());
  await trial.send(f(0, [St(101)]));
  const count = scaled(2, 3);
  const beats = ['R#2()', 'R#3()', 'R#4()'].slice(0, count);
  await trial.until(() => trial.rank().counters.heartbeats === count, 15_000);
  await pause(scaled(0, 5000));
  expect(await trial.output(1 + count)).toEqual(['S#1(∅→101)', ...beats]);
  const { counters, last_event_id } = trial.rank();
  expect(last_event_id).toBe(`${1 + count}`);
  expect(counters).toMatchObject({ published_events: 1, published_blocks: 1, heartbeats: count });
  expect(await trial.metric('kvrelay_heartbeats_total')).toEqual([count]);
  expect(await trial.metric('kvrelay_published_events_total', { event_type: 'removed' })).toEqual([
    0,
  ]);
  expect(await trial.metric('kvrelay_published_messages_total')).toEqual([1 + count]);
  expect(await trial.metric('kvrelay_relay_latency_seconds_count')).toEqual([1]);
});

test('there is none in strict, none that no router could answer with a query, none while withdrawn', async () => {
  const contested = makePlace();
  const endpoint = { namespace: 'dynamo', component: 'backend', endpoint: 'generate' };
  const other = { endpoint, workerId: 7n, dpRank: 0, publisherId: 4711 };
  const { bucket, key, value } = sourceRecord(other, { host: 'x', engineEndpoint: 'y' }, null);
  const trials = [
    await startIn(makePlace(), '--compat', 'strict'),
    await startIn(makePlace(), '--request-plane', 'none'),
    await SocketTrial.start(),
    await startIn(contested),
  ];
  contested.add(bucket, key, value);
  const withdrawn = trials[3] as SocketTrial;
  await withdrawn.until(() =>
    withdrawn.rank().degraded.some(({ code }) => code === 'ambiguous_source'),
  );
  for (const trial of trials) await trial.send(f(0, [St(101)]));
  await pause(2500);
  for (const trial of trials) expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
});
