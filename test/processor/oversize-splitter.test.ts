import { expect, test } from 'vitest';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import { u64Of } from '../../src/kernel/u64-list.ts';
import { OversizeSplitter } from '../../src/processor/oversize-splitter.ts';
import { MAX_ENVELOPE_HEAD_BYTES } from '../../src/protocol/envelope.ts';
import type { MmInfo } from '../../src/protocol/multimodal.ts';
import type { PlacementEvent } from '../../src/protocol/placement-event.ts';
import { RouterEventEncoder } from '../../src/protocol/router-event.ts';
import { cleared, removed, shown, stored } from '../support/placements.ts';

const WORKER_ID = 2n ** 64n - 1n;

function split(limit: number | (() => number), ...events: PlacementEvent[]): PlacementEvent[] {
  const maxMessageBytes = typeof limit === 'number' ? () => limit : limit;
  const splitter = new OversizeSplitter(maxMessageBytes);
  const out: PlacementEvent[] = [];
  for (const event of events) splitter.push(event, out);
  splitter.flush();
  return out;
}

/** Bytes of the message that carries this event alone, with the largest id there can be. */
function messageBytes(event: PlacementEvent): number {
  const buffer = new EncodeBuffer();
  new RouterEventEncoder(WORKER_ID).encode(buffer, event, Number.MAX_SAFE_INTEGER);
  return MAX_ENVELOPE_HEAD_BYTES + buffer.length;
}

/** Hashes that take 9 bytes each, from `first` on. */
function hashes(count: number, first = 2n ** 60n): bigint[] {
  return Array.from({ length: count }, (_, index) => first + BigInt(index));
}

const parentOf = ({ hasParent, parentHigh, parentLow }: PlacementEvent): bigint | null =>
  hasParent ? u64Of(parentLow, parentHigh) : null;

/** The parents that a chain of these parts has to have, the first one's given. */
function chainParents(parts: readonly PlacementEvent[], first: bigint | null): (bigint | null)[] {
  const lasts = parts.map(({ blockHashes }) => blockHashes.at(blockHashes.length - 1));
  return [first, ...lasts.slice(0, -1)];
}

test.each([null, 7n])('a store under %s becomes a chain of parts that all fit', (parent) => {
  const event = stored(parent, hashes(500), { tier: 'disk', dpRank: 3, sessionId: 'chat-é' });
  event.rawEventId = 11;
  const parts = split(2048, event);
  expect(parts.length).toBeGreaterThan(10);
  for (const part of parts) {
    expect(messageBytes(part)).toBeLessThanOrEqual(2048);
    const { type, storageTier, dpRank, sessionId, rawEventId, arrivedAtMs, mmInfos } = part;
    expect({ type, storageTier, dpRank, sessionId, rawEventId, arrivedAtMs, mmInfos }).toEqual({
      type: 'stored',
      storageTier: 'disk',
      dpRank: 3,
      sessionId: 'chat-é',
      rawEventId: 11,
      arrivedAtMs: event.arrivedAtMs,
      mmInfos: null,
    });
  }
  expect(parts.map(parentOf)).toEqual(chainParents(parts, parent));
  expect(parts.flatMap((part) => part.blockHashes.toBigInts())).toEqual(hashes(500));
  expect(parts.flatMap((part) => part.tokensHashes?.toBigInts() ?? [])).toEqual(
    hashes(500, 2n ** 60n + 1000n),
  );
});

test.each([
  ['longer than the plane can carry', 'é'.repeat(100_000)],
  ['longer than a part repeats', 's'.repeat(1025)],
])('a session id %s is left out of the parts', (_, sessionId) => {
  const parts = split(2048, stored(null, hashes(500), { sessionId }));
  expect(parts.length).toBeLessThan(20);
  expect(parts.flatMap((part) => part.blockHashes.toBigInts())).toEqual(hashes(500));
  for (const part of parts) {
    expect(part.sessionId).toBeNull();
    expect(messageBytes(part)).toBeLessThanOrEqual(2048);
  }
});

test('parts are not smaller than need be: two of them would not fit', () => {
  const parts = split(4096, stored(null, hashes(400)));
  for (const part of parts.slice(0, -1)) {
    expect(messageBytes(part)).toBeGreaterThan(2048);
  }
});

test('a remove becomes several', () => {
  const parts = split(2048, removed(hashes(500), { tier: 'external', dpRank: 1 }));
  expect(parts.length).toBeGreaterThan(1);
  for (const part of parts) {
    expect(messageBytes(part)).toBeLessThanOrEqual(2048);
    expect(part).toMatchObject({ type: 'removed', storageTier: 'external', dpRank: 1 });
    expect(part.tokensHashes).toBeNull();
  }
  expect(parts.flatMap((part) => part.blockHashes.toBigInts())).toEqual(hashes(500));
});

test('an event that just fits passes as it is; with a byte less it is split', () => {
  for (const event of [stored(null, hashes(40)), removed(hashes(40))]) {
    const limit = messageBytes(event);
    const [whole, ...more] = split(limit, event);
    expect(whole).toBe(event);
    expect(more).toEqual([]);
    expect(split(limit - 1, event).length).toBeGreaterThan(1);
  }
});

test('clears and single blocks pass, whatever the limit', () => {
  const events = [cleared(), stored(null, [1n]), removed([1n])];
  const out = split(1, ...events);
  for (const [index, event] of events.entries()) expect(out[index]).toBe(event);
  expect(out).toHaveLength(3);
});

test('where not even two blocks fit, each travels alone', () => {
  const parts = split(1, stored(9n, [1n, 2n, 3n]), removed([4n, 5n]));
  expect(parts.map(shown)).toEqual(['S 9:[1]', 'S 1:[2]', 'S 2:[3]', 'R [4]', 'R [5]']);
});

test('events around a split one keep their places', () => {
  const parts = split(2048, removed([1n]), stored(null, hashes(60)), removed([2n]));
  expect(shown(parts[0] as PlacementEvent)).toBe('R [1]');
  expect(shown(parts.at(-1) as PlacementEvent)).toBe('R [2]');
  expect(parts.length).toBeGreaterThan(3);
});

test('the limit is asked for each event', () => {
  const limits = [1 << 20, 2048, 1 << 20];
  const event = (): PlacementEvent => stored(null, hashes(100));
  const out = split(() => limits.shift() ?? 0, event(), event(), event());
  const sizes = out.map(({ blockCount }) => blockCount);
  expect([sizes[0], sizes.at(-1)]).toEqual([100, 100]);
  expect(sizes.length).toBeGreaterThan(3);
  expect(limits).toEqual([]);
});

function image(hash: bigint, offsetCount: number): MmInfo {
  const offsets = BigUint64Array.from({ length: offsetCount * 2 }, (_, index) => BigInt(index));
  return { mmHashes: BigUint64Array.of(hash), offsets: [offsets] };
}

test('image data stays with its block, and counts', () => {
  const event = stored(null, hashes(60));
  // Every third block has an image; their sizes differ, up to a third of a message.
  event.mmInfos = hashes(60).map((hash, index) =>
    index % 3 === 0 ? image(hash, index * 3) : null,
  );
  const parts = split(2048, event);
  for (const part of parts) {
    expect(messageBytes(part)).toBeLessThanOrEqual(2048);
    expect(part.mmInfos).toHaveLength(part.blockCount);
    for (const [block, info] of (part.mmInfos ?? []).entries()) {
      if (info !== null) expect(info.mmHashes[0]).toBe(part.blockHashes.at(block));
    }
  }
  const infos = parts.flatMap(({ mmInfos }) => mmInfos ?? []);
  expect(infos).toEqual(event.mmInfos);
  expect(parts.map(parentOf)).toEqual(chainParents(parts, null));
});

test('a block whose image data alone is over the limit travels alone', () => {
  const event = stored(null, [1n, 2n, 3n]);
  event.mmInfos = [null, image(5n, 2000), null];
  expect(split(2048, event).map(shown)).toEqual(['S [1]', 'S 1:[2]', 'S 2:[3]']);
});
