/** Trials of identity: adapters, salts and images that make blocks of equal tokens differ. */
import { expect, test } from 'vitest';
import { A, blocksOf, f, positional, St, Trial, tokensHash } from '../support/trials.ts';

const BASE = tokensHash(St(1, { tokens: A }));

/** An image as vLLM names it among the extra keys: 16 hex digits, 48 zeros. */
function imageKey(digits: string): string {
  return digits.padEnd(64, '0');
}

function withExtraKeys(...keys: unknown[]): Record<string, unknown> {
  return { ...St(101, { tokens: A }), extra_keys: [keys] };
}

test('I1: the adapter’s name is part of the tokens hash', () => {
  const base = tokensHash(St(101, { tokens: A }));
  const x = tokensHash(St(201, { tokens: A, lora: 'x' }));
  const y = tokensHash(St(301, { tokens: A, lora: 'y' }));
  expect(new Set([base, x, y]).size).toBe(3);
  expect(tokensHash(St(401, { tokens: A, lora: 'x' }))).toBe(x);
});

test('I2: the adapter’s number has no effect; alone it is counted', () => {
  const numbered = (id: number, lora?: string): Record<string, unknown> => ({
    ...St(101, { tokens: A, ...(lora !== undefined && { lora }) }),
    lora_id: id,
  });
  for (const form of [
    (event: Record<string, unknown>): unknown => event,
    (event: Record<string, unknown>): unknown => positional(event, 8),
  ]) {
    expect(tokensHash(form(numbered(1, 'x')))).toBe(tokensHash(form(numbered(9, 'x'))));
    expect(tokensHash(form(numbered(1, 'x')))).not.toBe(BASE);
    const trial = new Trial();
    const [store] = trial.events(f(0, [form(numbered(5))]));
    expect(store?.blocks[0]?.tokensHash).toBe(BASE);
    expect(trial.metrics.ignoredFields.lora_id_without_name).toBe(1);
    trial.send(f(1, [form(numbered(5, 'x'))]));
    expect(trial.metrics.ignoredFields.lora_id_without_name).toBe(1);
  }
});

test('I3: a salt is part of the tokens hash, as a field and as a tagged extra key alike', () => {
  const field = tokensHash(St(101, { tokens: A, salt: 't1' }));
  const tagged = tokensHash(withExtraKeys('dynamo-cache-salt:t1'));
  const other = tokensHash(St(101, { tokens: A, salt: 't2' }));
  expect(tagged).toBe(field);
  expect(new Set([field, other, BASE]).size).toBe(3);
  expect(tokensHash(St(101, { tokens: A, salt: '' }))).toBe(BASE);
});

test('I6: an extra key of 16 hex digits and 48 zeros is an image', () => {
  const images = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'].map((digits) => {
    const [block] = blocksOf(withExtraKeys(imageKey(digits)));
    expect(block?.mmHashes).toEqual([BigInt(`0x${digits}`)]);
    // With the offset at which vLLM places it.
    expect(blocksOf(withExtraKeys([imageKey(digits), 3]))).toEqual([block]);
    return block?.tokensHash;
  });
  expect(new Set([...images, BASE]).size).toBe(3);
});

test('I6: any other text of 64 hex digits is none', () => {
  for (const text of ['a'.repeat(64), `${'a'.repeat(16)}${'0'.repeat(47)}1`]) {
    expect(blocksOf(withExtraKeys(text))).toEqual(blocksOf(St(101, { tokens: A })));
    expect(blocksOf(withExtraKeys([text, 3]))).toEqual(blocksOf(St(101, { tokens: A })));
  }
});

test('I8: an image stays with its block when events are merged', () => {
  const image = (mmHash: bigint): unknown[] => [
    { mm_objects: [{ mm_hash: mmHash, offsets: [[0, 2]] }] },
  ];
  const trial = new Trial();
  const events = [
    { ...St(101), block_mm_infos: image(71n) },
    St(102, { parent: 101 }),
    { ...St(103, { parent: 102 }), block_mm_infos: image(2n ** 63n + 1n) },
  ];
  const published = trial.events(f(0, events));
  expect(published).toHaveLength(1);
  expect(published[0]?.blocks.map(({ hash, mmHashes }) => [hash, mmHashes])).toEqual([
    [101n, [71n]],
    [102n, null],
    [103n, [2n ** 63n + 1n]],
  ]);
});

test('I9: an adapter named with 64 hex digits is no image', () => {
  const lora = 'ab12'.repeat(16);
  const adapter = { ...St(101, { tokens: A, lora }), extra_keys: [[lora]] };
  expect(blocksOf(adapter)).toEqual(blocksOf(St(101, { tokens: A, lora })));
  expect(blocksOf(adapter)[0]?.mmHashes).toBeNull();
});

test('I9: and where it has the salt’s tag, it is no salt either, but a second one is', () => {
  const lora = 'dynamo-cache-salt:t1';
  const named = St(101, { tokens: A, lora });
  expect(blocksOf({ ...named, extra_keys: [[lora]] })).toEqual(blocksOf(named));
  const salted = St(101, { tokens: A, lora, salt: 't1' });
  expect(blocksOf({ ...named, extra_keys: [[lora, lora]] })).toEqual(blocksOf(salted));
});

test('I10: a plain text among the extra keys is neither salt nor image, and is counted', () => {
  const trial = new Trial();
  const [store] = trial.events(f(0, [withExtraKeys('hello')]));
  expect(store?.blocks).toEqual(blocksOf(St(101, { tokens: A })));
  expect(trial.metrics.ignoredFields.unknown_extra_key).toBe(1);
  trial.send(f(1, [withExtraKeys('dynamo-cache-salt:t1')]));
  trial.send(f(2, [withExtraKeys(imageKey('aaaaaaaaaaaaaaaa'))]));
  expect(trial.metrics.ignoredFields.unknown_extra_key).toBe(1);
});
