/** What the stores hold: the packed state beside a plain one, and its bounds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  NO_ATTRIBUTES,
  type ObjectAttributes,
} from '../../../src/stores/objects/attribute-sets.ts';
import type { ObjectChange, ObjectScope } from '../../../src/stores/objects/object-change.ts';
import { ObjectState, type ObjectStateOptions } from '../../../src/stores/objects/object-state.ts';
import { ObjectTable } from '../../../src/stores/objects/object-table.ts';
import { fixedSeed } from '../../support/properties.ts';

const DEFAULT: ObjectScope = { source: 'mooncake', backendId: 'b', tenantId: 'default' };
const OTHER: ObjectScope = { source: 'mooncake', backendId: 'b', tenantId: 't1' };

const bytes = (key: string): Buffer => Buffer.from(key);
const grouped = (groupId: string): ObjectAttributes => ({ ...NO_ATTRIBUTES, groupId });

interface Watched {
  readonly state: ObjectState;
  /** `+k cpu,disk`, `-k`, `x default`. */
  readonly told: string[];
}

function watched(bounds: Partial<ObjectStateOptions> = {}): Watched {
  const told: string[] = [];
  const state = new ObjectState({
    maxObjects: 1000,
    maxKeyBytes: 1 << 20,
    maxScopes: 8,
    maxAttributeSets: 100,
    onChange: (change) => told.push(shown(change)),
    ...bounds,
  });
  return { state, told };
}

function shown(change: ObjectChange): string {
  if (change.type === 'cleared') return `x ${change.scope.tenantId} ${change.objectCount}`;
  const sign = change.type === 'stored' ? '+' : '-';
  return `${sign}${Buffer.from(change.key).toString()} ${change.media.join()}`.trimEnd();
}

/** `key media` of every object, sorted. */
function held(state: ObjectState, at: ObjectScope = DEFAULT): string[] {
  const scope = state.scope(at);
  if (scope === null) return [];
  const rows: string[] = [];
  for (let entry = 0; entry < scope.table.entryEnd; entry++) {
    const object = state.objectAt(scope, entry);
    if (object !== null) rows.push(`${Buffer.from(object.key).toString()} ${object.media.join()}`);
  }
  return rows.sort();
}

test('media are a set: what is said twice counts once, and the object goes with the last one', () => {
  const { state, told } = watched();
  const key = bytes('a');
  expect(state.stored(DEFAULT, key, 'cpu', NO_ATTRIBUTES)).toBe(true);
  expect(state.stored(DEFAULT, key, 'cpu', NO_ATTRIBUTES)).toBe(false);
  state.stored(DEFAULT, key, 'disk', NO_ATTRIBUTES);
  expect(held(state)).toEqual(['a cpu,disk']);
  state.removed(DEFAULT, key, 'cpu');
  expect(state.removed(DEFAULT, key, 'cpu')).toBe(false);
  expect(held(state)).toEqual(['a disk']);
  state.removed(DEFAULT, key, 'disk');
  expect(state.removed(DEFAULT, key, 'disk')).toBe(false);
  expect(state.removed(OTHER, key, 'disk')).toBe(false);
  expect(held(state)).toEqual([]);
  expect(told).toEqual(['+a cpu', '+a cpu,disk', '-a disk', '-a']);
  expect(state.objectCount).toBe(0);
});

test('cleared empties one scope and no other', () => {
  const { state, told } = watched();
  for (const scope of [DEFAULT, OTHER]) state.stored(scope, bytes('a'), 'cpu', NO_ATTRIBUTES);
  expect(state.cleared(DEFAULT)).toBe(true);
  expect(state.cleared(DEFAULT)).toBe(false);
  expect(state.cleared({ ...DEFAULT, backendId: 'never seen' })).toBe(false);
  expect([held(state), held(state, OTHER)]).toEqual([[], ['a cpu']]);
  expect(told.at(-1)).toBe('x default 1');
  expect(state.countOf(({ source }) => source === 'mooncake')).toBe(1);
  expect(state.countOf(({ source }) => source === 'lmcache')).toBe(0);
});

test('attributes are kept, told when they change, and given up with the object', () => {
  const { state, told } = watched({ maxAttributeSets: 1 });
  const attributes = { ...grouped('g-7'), modelName: 'm', loraName: 'l', sessionId: 's' };
  state.stored(DEFAULT, bytes('a'), 'cpu', attributes);
  const scope = state.scope(DEFAULT);
  if (scope === null) throw new Error('no scope');
  expect(state.objectAt(scope, 0)?.attributes).toEqual({ ...NO_ATTRIBUTES, ...attributes });
  expect(state.stored(DEFAULT, bytes('a'), 'cpu', attributes)).toBe(false);
  state.removed(DEFAULT, bytes('a'), 'cpu');
  state.stored(DEFAULT, bytes('b'), 'cpu', grouped('g-8'));
  expect(state.objectAt(scope, 0)?.attributes.groupId).toBe('g-8');
  expect(state.unkeptAttributes).toBe(0);
  state.stored(DEFAULT, bytes('c'), 'cpu', grouped('g-9'));
  expect(state.unkeptAttributes).toBe(1);
  expect(state.stored(DEFAULT, bytes('c'), 'cpu', grouped('g-9'))).toBe(false);
  expect(told).toEqual(['+a cpu', '-a', '+b cpu', '+c cpu']);
});

test('what the store itself answers is adopted: media that it lacks go, attributes stay', () => {
  const { state, told } = watched();
  state.stored(DEFAULT, bytes('a'), 'cpu', grouped('g'));
  expect(state.adopt(DEFAULT, bytes('a'), ['disk'], 'reconciled')).toBe(true);
  expect(state.adopt(DEFAULT, bytes('a'), ['disk'], 'reconciled')).toBe(false);
  expect(state.adopt(DEFAULT, bytes('b'), ['cpu', 'disk'], 'reconciled')).toBe(true);
  expect(held(state)).toEqual(['a disk', 'b cpu,disk']);
  expect(state.adopt(DEFAULT, bytes('a'), [], 'reconciled')).toBe(true);
  expect(state.adopt(OTHER, bytes('a'), [], 'reconciled')).toBe(false);
  expect(told).toEqual(['+a cpu', '+a cpu,disk', '-a disk', '+b cpu', '+b cpu,disk', '-a']);
});

test('what finds no room is counted, and its removal changes nothing', () => {
  const { state } = watched({ maxObjects: 2, maxKeyBytes: 8, maxScopes: 1 });
  for (const key of ['aaaa', 'bbbbb', 'c', 'd']) {
    state.stored(DEFAULT, bytes(key), 'cpu', NO_ATTRIBUTES);
  }
  expect(held(state)).toEqual(['aaaa cpu', 'c cpu']);
  expect(state.untrackedObjects).toBe(2);
  expect(state.removed(DEFAULT, bytes('d'), 'cpu')).toBe(false);
  state.removed(DEFAULT, bytes('c'), 'cpu');
  expect(state.stored(OTHER, bytes('e'), 'cpu', NO_ATTRIBUTES)).toBe(false);
  expect(state.untrackedObjects).toBe(3);
  state.cleared(DEFAULT);
  expect(state.stored(OTHER, bytes('e'), 'cpu', NO_ATTRIBUTES)).toBe(true);
  for (let medium = 0; medium < 16; medium++) {
    state.stored(OTHER, bytes('e'), `m${medium}`, NO_ATTRIBUTES);
  }
  expect(state.media.overflows).toBe(1);
});

test('a key longer than an entry can tell is counted and not held', () => {
  const { state } = watched();
  const key = bytes('k'.repeat(65_536));
  for (let time = 0; time < 2; time++) {
    expect(state.stored(DEFAULT, key, 'cpu', NO_ATTRIBUTES)).toBe(false);
  }
  expect(state.stored(DEFAULT, key.subarray(1), 'cpu', NO_ATTRIBUTES)).toBe(true);
  expect(state.stored(DEFAULT, key.subarray(1), 'cpu', NO_ATTRIBUTES)).toBe(false);
  expect(state.untrackedObjects).toBe(2);
  expect(held(state)).toEqual([`${'k'.repeat(65_535)} cpu`]);
});

test('a scope beyond the bound finds room as soon as another is empty', () => {
  const { state } = watched({ maxScopes: 20 });
  const at = (tenant: number): ObjectScope => ({ ...DEFAULT, tenantId: `t${tenant}` });
  const store = (tenant: number): boolean =>
    state.stored(at(tenant), bytes('k'), 'cpu', NO_ATTRIBUTES);
  for (let tenant = 0; tenant < 20; tenant++) store(tenant);
  expect(store(9000)).toBe(false);
  state.removed(at(17), bytes('k'), 'cpu');
  expect(store(9000)).toBe(true);
  expect(store(9001)).toBe(false);
  state.cleared(at(9000));
  expect(store(9001)).toBe(true);
});

test('names that run together are different scopes', () => {
  const { state } = watched();
  const one = { source: 's', backendId: 'ab', tenantId: 'c' };
  const other = { source: 's', backendId: 'a', tenantId: 'bc' };
  state.stored(one, bytes('k'), 'cpu', NO_ATTRIBUTES);
  expect([held(state, one), held(state, other)]).toEqual([['k cpu'], []]);
});

type Step = readonly [
  kind: 'stored' | 'removed' | 'adopt' | 'cleared',
  key: string,
  media: string[],
];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom('stored', 'stored', 'removed', 'adopt', 'cleared'),
  fc.integer({ min: 0, max: 300 }).map((number) => `${'key/'.repeat(number % 7)}${number}`),
  fc.subarray(['cpu', 'disk']),
);

test('any history: the state, the changes it tells, and a plain map agree', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 2000 }), (steps) => {
      const followed = new Map<string, string>();
      const { state } = watched({
        onChange: (change) => {
          if (change.type === 'cleared') followed.clear();
          else if (change.media.length === 0) followed.delete(Buffer.from(change.key).toString());
          else followed.set(Buffer.from(change.key).toString(), change.media.join());
        },
      });
      const plain = new Map<string, Set<string>>();
      for (const [kind, key, media] of steps) {
        const set = plain.get(key) ?? new Set();
        if (kind === 'cleared' && media.length === 2) {
          plain.clear();
          state.cleared(DEFAULT);
        } else if (kind === 'adopt') {
          plain.set(key, new Set(media));
          state.adopt(DEFAULT, bytes(key), media, 'reconciled');
        } else if (kind !== 'cleared') {
          for (const medium of media) {
            if (kind === 'stored') set.add(medium);
            else set.delete(medium);
            state[kind](DEFAULT, bytes(key), medium, NO_ATTRIBUTES as never);
          }
          plain.set(key, set);
        }
      }
      const expected = [...plain].filter(([, set]) => set.size > 0);
      const rows = expected.map(([key, set]) => `${key} ${[...set].sort().join()}`).sort();
      expect(held(state)).toEqual(rows);
      expect([...followed].map(([key, media]) => `${key} ${media}`).sort()).toEqual(rows);
      expect(state.objectCount).toBe(rows.length);
    }),
    { ...fixedSeed, numRuns: 100 },
  );
});

test('a table of little takes little memory, as thousands are made at a time', () => {
  const table = new ObjectTable();
  expect(table.bytes).toBeLessThan(256);
  table.setMedia(table.findOrAdd(new Uint8Array(32)), 1);
  expect(table.bytes).toBeLessThan(256);
});

test('a table keeps its memory within a small multiple of what it holds, however long it runs', () => {
  const table = new ObjectTable();
  for (let round = 0; round < 50; round++) {
    for (let index = 0; index < 1000; index++) {
      table.setMedia(table.findOrAdd(bytes(`round/${round}/object/${index}`)), 1);
    }
    for (let index = 0; index < 1000; index++) {
      const key = bytes(`round/${round}/object/${index}`);
      if (index % 10 !== 0 || round % 10 !== 0) table.remove(table.find(key));
    }
  }
  expect(table.size).toBe(500);
  expect(table.entryEnd).toBeLessThanOrEqual(2000);
  expect(table.bytes).toBeLessThan(512 * 1024);
  expect(table.find(bytes('round/10/object/990'))).toBeGreaterThanOrEqual(0);
  expect(table.find(bytes('round/11/object/990'))).toBe(-1);
});
