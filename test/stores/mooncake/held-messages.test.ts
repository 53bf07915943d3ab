import { expect, test } from 'vitest';
import { HeldMessages } from '../../../src/stores/mooncake/held-messages.ts';

test('messages without content take room too', () => {
  const held = new HeldMessages(64 << 10);
  held.hold();
  let kept = 0;
  while (kept < 10_000 && held.push({ sequence: BigInt(kept), payload: new Uint8Array(0) })) kept++;
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThan(1000);
  expect(held.release()).toHaveLength(kept);
  expect(held.push({ sequence: 1n, payload: new Uint8Array(1000) })).toBe(true);
});
