import { describe, expect, test } from 'vitest';
import { EventRing } from '../../src/indexer/event-ring.ts';
import { EncodeBuffer } from '../../src/kernel/encode-buffer.ts';
import type { RouterBatch } from '../../src/protocol/router-event.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom } from '../support/router-streams.ts';

function batchOf(firstEventId: number, sizes: readonly number[]): RouterBatch {
  const encoded = new EncodeBuffer();
  const ends = sizes.map((size, index) => {
    for (let at = 0; at < size; at++) encoded.putByte((firstEventId + index + at) % 256);
    return encoded.length;
  });
  return { events: [], firstEventId, encoded, ends };
}

function bytesOf(eventId: number, size: number): number[] {
  return Array.from({ length: size }, (_, at) => (eventId + at) % 256);
}

test('EventRing holds the newest events, as a list that drops its oldest does', () => {
  const random = seededRandom(fixedSeed.seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  for (let run = 0; run < fixedSeed.numRuns; run++) {
    const [maxEvents, maxBytes] = [1 + below(40), 1 + below(400)];
    const ring = new EventRing({ maxEvents, maxBytes });
    let kept: { id: number; bytes: number[] }[] = [];
    for (let nextId = 1, step = 0; step < 60; step++) {
      const sizes = Array.from({ length: 1 + below(6) }, () => 1 + below(run % 3 === 0 ? 500 : 40));
      ring.push(batchOf(nextId, sizes));
      for (const size of sizes) {
        if (size > maxBytes) kept = [];
        else kept.push({ id: nextId, bytes: bytesOf(nextId, size) });
        nextId++;
      }
      const total = (): number => kept.reduce((sum, { bytes }) => sum + bytes.length, 0);
      while (kept.length > maxEvents || total() > maxBytes) kept.shift();
      expect(ring.lastEventId).toBe(nextId - 1);
      expect(ring.eventCount).toBe(kept.length);
      expect(ring.byteCount).toBe(total());
      expect(ring.isEmpty).toBe(kept.length === 0);
      const from = below(kept.length);
      if (kept.length === 0) continue;
      expect(ring.firstEventId).toBe(kept[0]?.id);
      const rest = kept.slice(from);
      const start = rest[0]?.id as number;
      expect([...ring.copyFrom(start)]).toEqual(rest.flatMap(({ bytes }) => bytes));
      const some = ring.copySome(start, 3, 60);
      expect(some.map((event) => [...event])).toEqual(
        rest.slice(0, some.length).map(({ bytes }) => bytes),
      );
      expect(some.length).toBeGreaterThan(0);
    }
  }
});

describe('EventRing', () => {
  test('is empty at first, and knows no event', () => {
    const ring = new EventRing({ maxEvents: 4, maxBytes: 100 });
    expect([ring.isEmpty, ring.firstEventId, ring.lastEventId]).toEqual([true, 1, 0]);
    expect(ring.copyFrom(1)).toHaveLength(0);
  });

  test('begins anew where ids do not follow on each other', () => {
    const ring = new EventRing({ maxEvents: 4, maxBytes: 100 });
    ring.push(batchOf(1, [10, 10]));
    ring.push(batchOf(2 ** 52, [10]));
    expect([ring.firstEventId, ring.lastEventId]).toEqual([2 ** 52, 2 ** 52]);
    expect([...ring.copyFrom(2 ** 52)]).toEqual(bytesOf(2 ** 52, 10));
  });

  test('copies no more events and bytes than it is asked for, but one at least', () => {
    const ring = new EventRing({ maxEvents: 10, maxBytes: 1000 });
    ring.push(batchOf(1, [50, 50, 50, 50]));
    expect(ring.copySome(1, 3, 1000)).toHaveLength(3);
    expect(ring.copySome(1, 10, 120)).toHaveLength(2);
    expect(ring.copySome(2, 10, 1)).toHaveLength(1);
    expect(ring.copySome(5, 10, 1000)).toEqual([]);
  });

  test('keeps events whole over its segments and its end', () => {
    const [size, maxBytes] = [300_000, (2 << 20) + 1000];
    const ring = new EventRing({ maxEvents: 100, maxBytes });
    for (let id = 1; id <= 20; id++) {
      ring.push(batchOf(id, [size]));
      const { firstEventId } = ring;
      expect(firstEventId).toBe(Math.max(1, id - 5));
      const expected: Buffer[] = [];
      for (let kept = firstEventId; kept <= id; kept++) {
        expected.push(Buffer.from(bytesOf(kept, size)));
      }
      expect(Buffer.concat(expected).equals(ring.copyFrom(firstEventId))).toBe(true);
    }
  });
});
