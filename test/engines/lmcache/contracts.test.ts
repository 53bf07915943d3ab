import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ContractChecker, type RawEvent } from '../../../src/engines/lmcache/contract-checker.ts';
import {
  CONTRACTS,
  EVENT_NAMES,
  type EventName,
  isInVersion,
  NEWEST_VERSION,
} from '../../../src/engines/lmcache/contracts.ts';
import { PUBLISHED_ROWS } from './published-contract.ts';
import { captures, fullEvent, having, WRONG_VALUES, without } from './samples.ts';

/** The last version that has the type, so that all of its published keys are asked for. */
function versionOf(name: EventName): string {
  return CONTRACTS[name].until ?? NEWEST_VERSION;
}

function violationsOf(event: RawEvent, version: string | null): string[] {
  const checker = new ContractChecker();
  expect(checker.check(event, version)).not.toBeNull();
  return checker.violations.map(({ field, kind, count }) => `${field} ${kind} ${count}`);
}

/** What the published contract calls a type of the table. */
const PUBLISHED_TYPES: Readonly<Record<string, string>> = {
  int: 'int',
  float: 'float',
  bool: 'bool',
  text: 'str',
  keys: 'list[ObjectKey]',
  saltCounts: 'dict[str, int]',
  texts: 'list[str]',
  intLists: 'list[list[int]]',
  blockRecords: 'list[BlockAllocationRecord]',
  map: 'dict[str, Any]',
};

describe('the published contract of', () => {
  test.each(PUBLISHED_ROWS)('$event holds', ({ event, fields, vocabularies }) => {
    const name = event as EventName;
    const contract = CONTRACTS[name];
    const full = fullEvent(name);
    const version = versionOf(name);
    expect(violationsOf(full, '0.5.1')).toEqual([]);
    expect(violationsOf(full, version)).toEqual([]);
    for (const [field, type] of Object.entries(fields)) {
      const known = contract.fields[field];
      expect(known, `${field}`).toBeDefined();
      if (known === undefined) continue;
      expect(PUBLISHED_TYPES[known.type], `${field}`).toBe(type);
      // Published keys are there from the first version on; some may be absent, or go.
      expect(known.since, `${field}`).toBeUndefined();
      const lastVersion = known.until ?? version;
      const missing = known.absent === undefined || known.absent.where !== undefined;
      const gone = violationsOf(without(full, field), lastVersion);
      expect(gone).toEqual(missing ? [`${field} missing 1`] : []);
      const wrong = violationsOf(having(full, { [field]: WRONG_VALUES[known.type] }), lastVersion);
      expect(wrong).toEqual([`${field} type 1`]);
      const words = vocabularies?.[field];
      for (const word of words ?? [])
        expect(violationsOf(having(full, { [field]: word }), version)).toEqual([]);
      if (words !== undefined)
        expect(violationsOf(having(full, { [field]: 'other' }), version)).toEqual([
          `${field} value 1`,
        ]);
    }
  });
});

test('the table has the 53 published types and 63 of the newest version', () => {
  expect(new Set(PUBLISHED_ROWS.map(({ event }) => event)).size).toBe(53);
  const newest = EVENT_NAMES.filter((name) => isInVersion(NEWEST_VERSION, CONTRACTS[name]));
  expect(newest.length).toBe(63);
  expect(new Set(captures().map(({ name }) => name))).toEqual(new Set(newest));
  const oldest = EVENT_NAMES.filter((name) => isInVersion('0.5.1', CONTRACTS[name]));
  expect(oldest.length).toBe(63);
  expect(PUBLISHED_ROWS.filter(({ event }) => !oldest.includes(event as EventName))).toEqual([]);
});

test('what the real bus of the newest version carries breaks no contract and adds no key', () => {
  const checker = new ContractChecker();
  for (const { name, event } of captures()) {
    expect(checker.check(event, NEWEST_VERSION)).toMatchObject({ name, metadata: event.metadata });
  }
  expect(checker.violations).toEqual([]);
  expect([...checker.additiveKeys]).toEqual([]);
  expect(checker.unknownEvents).toBe(0);
});

test.each([
  [
    'L2_STORE_COMPLETED',
    { failed_count: 2, succeeded_count: 0, key_count_per_salt: undefined },
    [],
  ],
  [
    'L2_STORE_COMPLETED',
    { succeeded_count: 2, key_count_per_salt: undefined },
    ['key_count_per_salt missing 1'],
  ],
  ['CB_RETRIEVE_END', { success: 0, worker_id: 'None' }, []],
  ['CB_RETRIEVE_END', { success: 'no' }, ['success type 1']],
  ['MP_STORE_END', { num_tokens: undefined }, []],
  ['MP_STORE_END', { total_bytes: '1.5' }, ['total_bytes type 1']],
  ['L1_WRITE_FINISHED', { l1_tag: undefined }, ['l1_tag missing 1']],
  ['L1_WRITE_FINISHED', { keys: null }, ['keys type 1']],
] as const)('%s with %j: %j', (name, changes, violations) => {
  const event = having(fullEvent(name), changes);
  for (const [key, value] of Object.entries(changes))
    if (value === undefined) Reflect.deleteProperty(event.metadata, key);
  expect(violationsOf(event, NEWEST_VERSION)).toEqual(violations);
});

test('a key that came with a version is not asked of an older one, nor of one that is unknown', () => {
  const event = without(fullEvent('L1_READ_FINISHED'), 'l1_tag');
  expect(violationsOf(event, '0.5.5')).toEqual([]);
  expect(violationsOf(event, null)).toEqual([]);
  expect(violationsOf(event, '0.5.6rc1')).toEqual(['l1_tag missing 1']);
  expect(violationsOf(without(event, 'keys'), null)).toEqual(['keys missing 1']);
});

test('a violation leaves the event, without the key that broke it', () => {
  const checker = new ContractChecker();
  const event = having(fullEvent('L1_READ_FAILED'), { reason: 7, during: 'elsewhere' });
  const checked = checker.check({ ...event, sessionId: '' }, NEWEST_VERSION);
  expect(checked?.metadata).toEqual({ during: 'elsewhere', keys: event.metadata.keys });
  expect(checker.check({ ...event, sessionId: '' }, NEWEST_VERSION)).not.toBeNull();
  expect(checker.violations).toEqual([
    { event: 'L1_READ_FAILED', field: 'during', kind: 'value', count: 2 },
    { event: 'L1_READ_FAILED', field: 'reason', kind: 'type', count: 2 },
  ]);
  expect(checker.events.get('L1_READ_FAILED')).toBe(2);
});

test('an event of a request without a session id is a violation', () => {
  expect(violationsOf({ ...fullEvent('MP_REQUEST_END'), sessionId: '' }, null)).toEqual([
    'session_id missing 1',
  ]);
});

test('unknown types are counted and some kept by name, additive keys are counted', () => {
  const checker = new ContractChecker();
  for (let index = 0; index < 40; index++) {
    const type = `new.type.${index}${'x'.repeat(100)}`;
    expect(checker.check({ ...fullEvent('MP_REQUEST_START'), type }, null)).toBeNull();
  }
  expect(checker.unknownEvents).toBe(40);
  expect(checker.unknownNames.size).toBe(16);
  expect([...checker.unknownNames].every((name) => name.length === 64)).toBe(true);
  checker.check(having(fullEvent('MP_REQUEST_START'), { one: 1, two: 2 }), null);
  expect([...checker.additiveKeys]).toEqual([['MP_REQUEST_START', 2]]);
});

test('docs/lmcache-events.md is what the script makes of the table', () => {
  const script = fileURLToPath(new URL('../../../scripts/lmcache-events.mjs', import.meta.url));
  const page = new URL('../../../docs/lmcache-events.md', import.meta.url);
  const { stdout, stderr } = spawnSync(process.execPath, [script, '--print'], { encoding: 'utf8' });
  expect(stdout, `${stderr}`).toBe(readFileSync(page, 'utf8'));
});
