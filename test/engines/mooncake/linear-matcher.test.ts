import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LinearMatcher } from '../../../src/engines/mooncake/linear-matcher.ts';
import { parsePattern } from '../../../src/engines/mooncake/linear-pattern.ts';

/** What JavaScript's own expression gives for the whole text. */
function expected(pattern: string, text: string): Record<string, string> | null {
  const match = new RegExp(`^(?:${pattern})$`, 's').exec(text);
  if (match === null) return null;
  const groups = Object.entries(match.groups ?? {});
  return Object.fromEntries(groups.filter(([, group]) => group !== undefined));
}

function matched(pattern: string, text: string): Record<string, string> | null {
  return new LinearMatcher(parsePattern(pattern)).match(text);
}

test.each([
  ['(?<a>.*)@(?<b>.*)', 'x@y@z'],
  ['(?<a>.*?)@(?<b>.*)', 'x@y@z'],
  ['(?<a>a|ab)(?<b>c|bcd)?(?<c>d*)', 'abcd'],
  ['(?<a>x)?(?<b>y??)z', 'xz'],
  ['(?<a>[^@]{2,3})(?<b>.{0,2}?)(?<c>.*)', 'abcde'],
  ['(?<a>\\d+)\\.(?<b>[\\w-]+)\\s(?<c>[\\]\\\\^-])', '12.a-b ]'],
  ['(?<a>[-a])(?<b>[a-])', '--'],
  ['(?<a>[^\\d\\s]+)(?<b>\\D\\W\\S)', 'añ💥-!x'],
  ['(?<a>[^\\wb-c]+)(?<b>.*)', '-z'],
  ['(?<a>(?:ab){2})(?<b>(?:ab){1,})(?<c>(a|b){0,3})', 'ababababab'],
  ['(?<a>a*)(?<b>|b)', ''],
  ['(?<a>.)(?<b>.)', '\n\u2028'],
])('LinearMatcher finds in %s what a backtracking matcher finds for %j', (pattern, text) => {
  expect(expected(pattern, text)).not.toBeNull();
  expect(matched(pattern, text)).toEqual(expected(pattern, text));
});

test('a leading ^ and a last $ change nothing, an escaped $ is one', () => {
  expect(matched('^(?<a>x)$', 'x')).toEqual({ a: 'x' });
  expect(matched('(?<a>x)\\$', 'x$')).toEqual({ a: 'x' });
  expect(matched('(?<a>x)\\\\$', 'x\\')).toEqual({ a: 'x' });
});

const quantifier = fc.constantFrom(
  '',
  '',
  '*',
  '+',
  '?',
  '*?',
  '+?',
  '??',
  '{2}',
  '{0,2}',
  '{1,}?',
);
const atom = fc.constantFrom(
  'a',
  'b',
  '.',
  '[ab]',
  '[^a]',
  '\\w',
  '(?:ab)',
  '(?:a|b)',
  '(?:a|ab|)',
);
const piece = fc.tuple(atom, quantifier).map((parts) => parts.join(''));
const run = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(''));

test('LinearMatcher agrees with JavaScript on random patterns and texts', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '@'), maxLength: 10 });
  let matches = 0;
  fc.assert(
    fc.property(run, run, run, text, (first, second, third, key) => {
      const pattern = `(?<x>${first})(?:@|(?<y>${second}))(?<z>${third})`;
      const wanted = expected(pattern, key);
      if (wanted !== null) matches++;
      expect(matched(pattern, key)).toEqual(wanted);
    }),
    { numRuns: 5_000 },
  );
  expect(matches).toBeGreaterThan(500);
});
