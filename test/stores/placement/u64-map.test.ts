/** U64Map beside a plain map, through growth, and what the largest call of many takes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { U64Map } from '../../../src/stores/placement/u64-map.ts';
import { fixedSeed } from '../../support/properties.ts';

const step = fc.record({
  kind: fc.constantFrom('set', 'set', 'set', 'delete', 'find'),
  key: fc.integer({ min: 0, max: 400 }),
  value: fc.integer(),
});

test('any history agrees with a plain map', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 200, maxLength: 1200 }), (steps) => {
      const map = new U64Map();
      const plain = new Map<number, number>();
      for (const { kind, key, value } of steps) {
        // Half of the keys have the same low word.
        const [low, high] = key % 2 === 0 ? [key, -1] : [7, key];
        if (kind === 'set') {
          map.set(low, high, value, ~value);
          plain.set(key, value);
        } else if (kind === 'delete') {
          map.delete(low, high);
          plain.delete(key);
        } else {
          const entry = map.find(low, high);
          const found = entry < 0 ? undefined : map.valueLow(entry);
          expect(found).toBe(plain.get(key));
          if (found !== undefined) expect(map.valueHigh(entry)).toBe(~found);
        }
        expect(map.size).toBe(plain.size);
      }
      for (const [key, value] of plain) {
        const entry = key % 2 === 0 ? map.find(key, -1) : map.find(7, key);
        expect(map.valueLow(entry)).toBe(value);
      }
    }),
    { ...fixedSeed, numRuns: 200 },
  );
});

test('keys are u64 whatever their sign', () => {
  const map = new U64Map();
  map.set(0xffff_ffff, 0x8000_0000, 1, 2);
  expect(map.find(-1, -0x8000_0000)).toBeGreaterThanOrEqual(0);
  map.delete(-1, 0x8000_0000);
  expect(map.size).toBe(0);
});
