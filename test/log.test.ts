import { expect, test } from 'vitest';
import { createLogger, createWarner, type LogOptions, WarningBudget } from '../src/log.ts';

function capture(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const out = { write: (line: string) => void lines.push(line) };
  return { lines, logger: createLogger({ level: 'info', format: 'json', out, ...options }) };
}

test('a JSON line has level name, ISO time, fields and message', () => {
  const { lines, logger } = capture();
  logger.info({ rank: 3, workerId: 9_007_199_254_740_993n }, 'started');
  logger.debug('not shown');
  expect(lines).toHaveLength(1);
  const entry = JSON.parse(lines[0] as string);
  expect(entry).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    rank: 3,
    workerId: '9007199254740993',
    msg: 'started',
  });
});

test.each(['password', 'token', 'creds', 'nkey', 'tokens', 'authorization'])(
  '%s is masked at the top and one level down, in both forms',
  (key) => {
    for (const format of ['json', 'pretty'] as const) {
      const { lines, logger } = capture({ format });
      logger.info({ [key]: 'hunter2', nats: { [key]: 'hunter2', user: 'ann' } }, 'connect');
      expect(lines.join('')).not.toContain('hunter2');
      expect(lines.join('')).toContain('ann');
    }
  },
);

test('a pretty line has clock, level, message and fields, and stays one line', () => {
  const { lines, logger } = capture({ format: 'pretty' });
  logger.warn({ cause: 'gap', path: 'a b', n: 5, nested: { a: 1 } }, 'lost\n\u001b[2Jbatches');
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d warn {2}lost\\n\\u001b\[2Jbatches cause=gap path="a b" n=5 nested=\{"a":1\}\n$/,
  );
  logger.error(new Error('boom'));
  expect(lines[1]).toMatch(/^\d\d:\d\d:\d\d error boom err=\{.*\}\n$/);
});

test('WarningBudget gives 3 lines a cause, then one a minute with what was held back', () => {
  let nowMs = 1000;
  const budget = new WarningBudget({ now: () => nowMs });
  const admitted = (): (number | null)[] => [1, 2, 3, 4, 5].map(() => budget.admit('gap'));
  expect(admitted()).toEqual([0, 0, 0, null, null]);
  nowMs += 59_999;
  expect(admitted()).toEqual([null, null, null, null, null]);
  nowMs += 1;
  expect(admitted()).toEqual([7, null, null, null, null]);
  nowMs += 60_000;
  expect(budget.admit('gap')).toBe(4);
  expect(budget.admit('other')).toBe(0);
});

test('WarningBudget keeps a bounded number of causes; the rest share one', () => {
  const budget = new WarningBudget({ maxCauses: 2, freeLines: 1, now: () => 0 });
  expect([budget.admit('a'), budget.admit('b')]).toEqual([0, 0]);
  const further = Array.from({ length: 1000 }, (_, index) => budget.admit(`c${index}`));
  expect(further.filter((heldBack) => heldBack !== null)).toEqual([0]);
  expect(budget.takeHeldBack()).toEqual(new Map([['further causes', 999]]));
  expect(budget.takeHeldBack().size).toBe(0);
});

test('createWarner() logs cause, fields and the count, and tells the rest at the end', () => {
  let nowMs = 0;
  const { lines, logger } = capture();
  const warner = createWarner(logger, new WarningBudget({ freeLines: 1, now: () => nowMs }));
  for (let index = 0; index < 3; index++) warner.warn('gap', { rank: index }, 'batches lost');
  nowMs += 60_000;
  for (let index = 3; index < 5; index++) warner.warn('gap', { rank: index }, 'batches lost');
  warner.flush();
  warner.flush();
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries).toMatchObject([
    { level: 'warn', cause: 'gap', rank: 0, msg: 'batches lost' },
    { cause: 'gap', rank: 3, heldBack: 2 },
    { cause: 'gap', heldBack: 1, msg: 'warnings held back' },
  ]);
  expect(entries[0]).not.toHaveProperty('heldBack');
});
