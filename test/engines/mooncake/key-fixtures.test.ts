/** Keys and event hashes that released engines made, by `test/peers/mooncake_keys.py`. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { keyPatternOf, parsedHashOf } from '../../../src/engines/mooncake/key-patterns.ts';

const EventHash = z.union([
  z.strictObject({ $int: z.string() }),
  z.strictObject({ $bytes: z.string() }),
]);
const Fixture = z.strictObject({
  package: z.string(),
  key: z.string(),
  event_hashes: z.array(EventHash).min(1),
  case: z.string(),
  rank: z.number().optional(),
  model: z.string().optional(),
  /** Given where the engine hashes the block for its events in another way than for its key. */
  matches: z.literal(false).optional(),
});

const file = new URL('../../vectors/mooncake-keys.jsonl', import.meta.url);
const fixtures = readFileSync(file, 'utf8')
  .trim()
  .split('\n')
  .map((line) => Fixture.parse(JSON.parse(line)));

/** The u64 that kvrelay reads from an event: integers as they are, of bytes the last 8, big-endian. */
function u64OfEvent(hash: z.infer<typeof EventHash>): bigint {
  const value = '$int' in hash ? BigInt(hash.$int) : BigInt(`0x${hash.$bytes.slice(-16)}`);
  return BigInt.asUintN(64, value);
}

test('there are keys of every engine', () => {
  const packages = new Set(fixtures.map((fixture) => fixture.package));
  expect([...packages].sort()).toEqual(['lmcache==0.5.6', 'sglang==0.5.23', 'vllm==0.33.0']);
});

test.each(fixtures.filter((fixture) => fixture.matches !== false))(
  '$package, $case: $key has the hash of its events',
  (fixture) => {
    const preset = fixture.package.split('==')[0] as string;
    const parsed = keyPatternOf(preset).parse(fixture.key);
    expect(parsed).not.toBeNull();
    if (parsed === null) return;
    expect(parsed.encoding).toBe('hex');
    expect(fixture.key).toContain(parsed.blockHash);
    for (const hash of fixture.event_hashes) expect(parsedHashOf(parsed)).toBe(u64OfEvent(hash));
    expect(parsed.rank).toBe(fixture.rank);
    expect(parsed.model).toBe(fixture.model);
  },
);

test('a key whose block has another hash in events gives one that no event has', () => {
  const others = fixtures.filter((fixture) => fixture.matches === false);
  expect(others.map((fixture) => fixture.case)).toEqual(['salt', 'salt', 'salt']);
  const inEvents = new Set(fixtures.flatMap((fixture) => fixture.event_hashes.map(u64OfEvent)));
  for (const { key } of others) {
    const parsed = keyPatternOf('sglang').parse(key);
    expect(parsed).not.toBeNull();
    if (parsed !== null) expect(inEvents.has(parsedHashOf(parsed) ?? 0n)).toBe(false);
  }
});
