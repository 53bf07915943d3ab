/** Messages of a whole relay while its engine is ahead of it, and while it is not. */
import { expect, test } from 'vitest';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, St } from '../support/trials.ts';

const BATCHES = 2000;

/** Sends more than the relay reads in a turn; resolves with messages and events that its router got. */
async function flood(...flags: string[]): Promise<{ messages: number; events: string[] }> {
  const trial = await SocketTrial.start({ flags });
  const batches = Array.from({ length: BATCHES }, (_, at) => f(at, [St(at + 1)]));
  for (const frames of batches) await trial.send(frames);
  const events = await trial.output(BATCHES);
  const messages = trial.payloads().length;
  expect(await trial.metric('kvrelay_published_messages_total')).toEqual([messages]);
  expect(await trial.metric('kvrelay_relay_latency_seconds_count')).toEqual([messages]);
  expect(trial.rank().counters.published_events).toBe(BATCHES);
  return { messages, events };
}

test('an engine that is ahead has its events in fewer messages, whole and in order; never in strict', async () => {
  const safe = await flood();
  expect(safe.messages).toBeLessThan(BATCHES / 2);
  const strict = await flood('--compat', 'strict');
  expect(strict.messages).toBe(BATCHES);
  expect(safe.events).toEqual(strict.events);
});

test('batches that come one by one have messages of their own', async () => {
  const trial = await SocketTrial.start();
  for (let at = 0; at < 30; at++) {
    await trial.send(f(at, [St(at + 1)]));
    await trial.output(at + 1);
  }
  expect(trial.payloads()).toHaveLength(30);
});
