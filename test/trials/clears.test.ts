/** Trials of clears: what goes with one, what stays, and what may not overtake it. */
import { expect, test } from 'vitest';
import { B, Clr, f, positional, Rm, St, Trial, tokensHash } from '../support/trials.ts';

test.each([
  ['a map', Clr],
  ['an array', positional(Clr, 1)],
])('C1: a clear as %s is published and empties the index', (_, clear) => {
  const trial = new Trial();
  expect(trial.send(f(0, [St(101)]), f(1, [St(102)]))).toEqual(['S#1(∅→101)', 'S#2(∅→102)']);
  expect(trial.index).toEqual(['101', '102']);
  expect(trial.send(f(2, [clear]))).toEqual(['X#3']);
  expect(trial.index).toEqual([]);
  expect(trial.metrics.cleared.engine).toBe(1);
});

test('C1: counts go with it: one remove is enough for a block stored again', () => {
  const trial = new Trial();
  trial.send(f(0, [St(101)]), f(1, [St(101)]), f(2, [Clr]));
  expect(trial.send(f(3, [St(101)]), f(4, [Rm(101)]))).toEqual(['S#4(∅→101)', 'R#5(101)']);
});

test('C3: one clear empties all tiers of its rank, and no other rank', () => {
  const trial = new Trial();
  trial.send(f(0, [St(101)]), f(1, [St(201, { medium: 'CPU' })]));
  trial.send(f(2, [St(301)], { rank: 1 }));
  expect(trial.index).toEqual(['101', '201@host_pinned', 'r1:301']);
  expect(trial.send(f(3, [Clr]))).toEqual(['X#4']);
  expect(trial.index).toEqual(['r1:301']);
  expect(trial.metrics.liveBlocks).toMatchObject({ device: 1, host_pinned: 0 });
});

test('C5: a clear flushes what is pending and lets nothing pass it', () => {
  const trial = new Trial({ batchingTimeoutMs: 1000 });
  expect(trial.send(f(0, [St(101), Clr, St(102)]))).toEqual(['S#1(∅→101)', 'X#2']);
  expect(trial.advance(999)).toEqual([]);
  expect(trial.advance(1)).toEqual(['S#3(∅→102)']);

  const last = new Trial({ batchingTimeoutMs: 1000 });
  expect(last.send(f(0, [St(101), Clr]))).toEqual(['S#1(∅→101)', 'X#2']);
});

test('C6: salts go with a clear, learned groups stay', () => {
  const child = St(102, { parent: 101, tokens: B });
  const unsalted = tokensHash(St(102, { tokens: B }));
  const salted = tokensHash(St(102, { tokens: B, salt: 't1' }));
  const childHash = (...between: ReturnType<typeof f>[]): bigint | undefined => {
    const trial = new Trial();
    trial.send(f(0, [St(101, { salt: 't1' })]), ...between);
    return trial.events(f(9, [child])).at(-1)?.blocks[0]?.tokensHash;
  };
  expect(childHash()).toBe(salted);
  expect(childHash(f(1, [Clr]))).toBe(unsalted);
  expect(childHash(f(1, [Clr], { rank: 1 }))).toBe(salted);

  const trial = new Trial();
  const learned = St(101, { group: 1, kind: 'full_attention' });
  expect(trial.send(f(0, [learned, Clr]))).toEqual(['S#1(∅→101)', 'X#2']);
  expect(trial.send(f(1, [St(103, { group: 1 })]))).toEqual(['S#3(∅→103)']);
});
