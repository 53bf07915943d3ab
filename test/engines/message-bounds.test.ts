import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { arena } from '../../src/kernel/arena.ts';
import type { BatchFault, NativeBatch } from '../../src/protocol/native-batch.ts';

const MAX_ELEMENTS = 2 ** 18;

function read(events: readonly unknown[]): NativeBatch | BatchFault {
  arena.reset();
  const payload = Buffer.from(pack([0, events, 0]));
  return new BatchReader({ compat: 'safe', engine: 'vllm' }).read(payload, 0);
}

const list = <Item>(length: number, item: Item): Item[] => new Array<Item>(length).fill(item);

test('more events than any engine has in one step are one message that is too large', () => {
  expect(read(list(MAX_ELEMENTS + 1, null))).toBe('oversize');
});

test('as many as may be, none of them usable, are counted and not kept', () => {
  expect(read(list(MAX_ELEMENTS, ['BlockStored']))).toMatchObject({
    events: [],
    dropped: { removals: 0, byReason: { missing_field: MAX_ELEMENTS } },
  });
});

test('a store with more lists of extra keys than may be costs the message', () => {
  const store = ['BlockStored', [1], null, [1, 2, 3, 4], 4, null, 'GPU', null];
  expect(read([[...store, list(MAX_ELEMENTS + 1, null)]])).toBe('oversize');
  expect(read([[...store, list(1, null)]])).toMatchObject({ events: [{ type: 'stored' }] });
});
