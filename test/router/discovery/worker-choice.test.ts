import { expect, test } from 'vitest';
import { chooseWorker, othersClaims } from '../../../src/router/discovery/worker-choice.ts';

const A = 2n ** 64n - 1n;
const B = 2n ** 64n - 2n;
const C = 7n;

test.each([
  ['nobody is there', null, [], [], { kind: 'missing' }],
  ['one is there', null, [A], [], { kind: 'found', workerId: A }],
  ['one is there and has a source', null, [A], [A], { kind: 'claimed', workerId: A }],
  ['several are there', null, [A, B], [], { kind: 'ambiguous', workerIds: [A, B] }],
  ['all but one have a source', null, [A, B], [A], { kind: 'found', workerId: B }],
  ['some have a source', null, [A, B, C], [A], { kind: 'ambiguous', workerIds: [B, C] }],
  ['all have a source', null, [A, B], [A, B], { kind: 'ambiguous', workerIds: [A, B] }],
  ['ours stays while others come', A, [B, A], [], { kind: 'found', workerId: A }],
  ['ours stays though somebody claims it', A, [A, B], [A], { kind: 'found', workerId: A }],
  ['ours went', A, [], [], { kind: 'missing' }],
  ['ours went, a successor came', A, [C], [], { kind: 'found', workerId: C }],
  ['ours went, others have theirs', A, [B], [B], { kind: 'missing' }],
  ['ours went, a successor beside others', A, [B, C], [B], { kind: 'found', workerId: C }],
] as const)('%s', (_, current, workerIds, claimed, choice) => {
  expect(chooseWorker({ current, workerIds, claimed: new Set(claimed) })).toEqual(choice);
});

test('claims of others are those for our ranks under publisher ids that are not ours', () => {
  const claim = (publisherId: bigint, dpRank: number) => ({
    publisherId,
    dpRank,
    workerId: A,
    mark: null,
  });
  const claims = [claim(1n, 0), claim(2n, 0), claim(3n, 1), claim(4n, 2)];
  expect(othersClaims(claims, [0, 1], new Set([1n]))).toEqual([claim(2n, 0), claim(3n, 1)]);
});
