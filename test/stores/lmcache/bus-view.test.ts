/** Whatever a message holds, the view takes it: each key of each event with values that are none of its type. */
import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import type { RawEvent } from '../../../src/engines/lmcache/contract-checker.ts';
import { CONTRACTS, EVENT_NAMES } from '../../../src/engines/lmcache/contracts.ts';
import { BusView } from '../../../src/stores/lmcache/bus-view.ts';
import { fullEvent, having } from '../../engines/lmcache/samples.ts';

const UNCONVERTIBLE = { toString: 1, valueOf: 1, length: 3 };
const LARGE = 2n ** 63n;
const KEY = {
  chunk_hash: Buffer.alloc(0),
  model_name: '',
  kv_rank: LARGE,
  object_group_id: -1,
  cache_salt: '\0',
};
const VALUES: readonly unknown[] = [
  null,
  -1,
  0.5,
  LARGE,
  Number.NaN,
  'text',
  true,
  [],
  {},
  UNCONVERTIBLE,
  [null, UNCONVERTIBLE],
  [KEY, KEY],
  [{ req_id: 'r', new_block_ids: [LARGE, 1], new_token_ids: [] }],
  [{ req_id: 'r', new_block_ids: [LARGE, 1], new_token_ids: [1, LARGE, 2] }],
  [{ req_id: 'r', new_block_ids: [], new_token_ids: [1] }],
  [new Array(8).fill(UNCONVERTIBLE)],
  [[1, 1, UNCONVERTIBLE, 2, 3, 'k', 1, 2]],
  [[1n, LARGE, 'cpu', 2, LARGE, 'k', 1, 2]],
  { constructor: 1, __proto__: null },
];

function payloadOf(events: readonly RawEvent[]): Buffer {
  const entries = events.map(({ type, timestamp, sessionId, metadata }) => [
    type,
    timestamp,
    sessionId,
    metadata,
  ]);
  return pack([1000.5, entries, { lmcache: '0.5.6' }]);
}

test('no value of any key is an exception', () => {
  const view = new BusView({
    sampleRate: 1,
    maxTracked: 50,
    maxPending: 50,
    timeoutS: 60,
    requestTimeoutS: 60,
    maxLabelValues: 20,
  });
  let sent = 0;
  for (const name of EVENT_NAMES) {
    const full = fullEvent(name);
    const events = Object.keys(CONTRACTS[name].fields).flatMap((field) =>
      VALUES.map((value, index) => having({ ...full, timestamp: index }, { [field]: value })),
    );
    sent += events.length + 1;
    expect(view.take(payloadOf([full, ...events])), `${name}`).toBeNull();
    view.advance(1000);
  }
  let seen = 0;
  for (const count of view.checker.events.values()) seen += count;
  expect([seen, view.badEvents]).toEqual([sent, 0]);
  view.restart();
  expect(view.requests.inFlight).toBe(0);
});
