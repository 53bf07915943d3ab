/** What MP servers report, as objects: numbers, lives, gaps, holders, pools, capacity. */
import { describe, expect, test } from 'vitest';
import type { CacheBatch } from '../../../../src/engines/lmcache/cache-batch.ts';
import { CoordinatorReader } from '../../../../src/engines/lmcache/coordinator-reader.ts';
import { MAX_INSTANCES } from '../../../../src/stores/lmcache/coordinator/instances.ts';
import {
  capturedBody,
  coordinatorCaptures,
  type WireFields,
  wireBatch,
  wireEntry,
} from '../../../support/cache-batches.ts';
import { CoordinatorTrial } from '../../../support/coordinator-trial.ts';

const store = (seq: number, chunk: string, fields: WireFields = {}, key: WireFields = {}) =>
  wireBatch(seq, { entries: [wireEntry(chunk, key)], ...fields });
const remove = (seq: number, chunk: string, fields: WireFields = {}, key: WireFields = {}) =>
  store(seq, chunk, { event_type: 'delete', ...fields }, key);

const L2 = { tier: 'l2', backend: 'fs' };
const POOL = { tier: 'l2', backend: 's3', shared: true };
const OTHER = { instance_id: 'mp-2' };

test('what the real sink has posted ends with what it holds', () => {
  const trial = new CoordinatorTrial();
  const outcomes = coordinatorCaptures.map((capture) =>
    trial.view.take(new CoordinatorReader().read(capturedBody(capture)) as CacheBatch[]),
  );
  expect(outcomes).toEqual(outcomes.map(() => ({ applied: 1, duplicates: 0, stale: 0 })));
  const places = [...trial.state.scopes()].map(
    ({ backendId, tenantId, table }) => `${backendId}/${tenantId} ${table.size}`,
  );
  expect(places).toEqual(['server:lmcache-1/m1 2', 'server:lmcache-1/m1@tenant-a 1']);
  expect(trial.usage()).toEqual([
    'lmcache-1 l1/dram 3 3 3145728 1073741824',
    'lmcache-1 l2/fs 0 0 0 -',
  ]);
  expect(trial.counts.accessedKeys).toBe(6);
  expect(trial.metrics.lostMessages).toBe(0);
});

describe('objects', () => {
  test('model, salt, tier and backend are told apart', () => {
    const trial = new CoordinatorTrial();
    trial.take(
      store(1, 'a'),
      store(2, 'a', {}, { model_name: 'm2' }),
      store(3, 'a', {}, { cache_salt: 't' }),
      store(4, 'a', L2),
      store(5, 'a', { backend: 'gds' }),
    );
    expect(trial.held()).toEqual([
      'mp-1//a l1/dram,l1/gds,l2/fs',
      'mp-1//m2@a l1/dram',
      'mp-1/t/a l1/dram',
    ]);
    trial.take(remove(6, 'a'));
    expect(trial.held()).toEqual([
      'mp-1//a l1/gds,l2/fs',
      'mp-1//m2@a l1/dram',
      'mp-1/t/a l1/dram',
    ]);
  });

  test('a chunk goes with the last of its ranks and groups', () => {
    const trial = new CoordinatorTrial();
    const holders = [{ kv_rank: 1 }, { kv_rank: 2 }, { kv_rank: 2, object_group_id: 1 }];
    trial.take(...holders.map((key, index) => store(index + 1, 'a', {}, key)));
    expect(trial.usage()).toEqual(['mp-1 l1/dram 1 3 300 -']);
    trial.take(remove(4, 'a', {}, { kv_rank: 2 }), remove(5, 'a', {}, { kv_rank: 2 }));
    trial.take(remove(6, 'a', {}, { kv_rank: 1 }));
    expect(trial.held()).toEqual(['mp-1//a l1/dram']);
    trial.take(remove(7, 'a', {}, { kv_rank: 2, object_group_id: 1 }));
    expect(trial.held()).toEqual([]);
    expect(trial.usage()).toEqual(['mp-1 l1/dram 0 0 0 -']);
    expect(trial.told).toEqual(['+a l1/dram', '-a']);
    const { stored, removed } = trial.metrics.events;
    expect(stored).toEqual({ received: 3, applied: 3, repeated: 0 });
    expect(removed).toEqual({ received: 4, applied: 3, repeated: 1 });
  });

  test('stored again is the same object, with the size it has now', () => {
    const trial = new CoordinatorTrial();
    const large = 5 * 2 ** 32 + 7;
    trial.take(store(1, 'a'), store(2, 'a', {}, { size_bytes: large }), store(3, 'b'));
    expect(trial.told).toEqual(['+a l1/dram', '+b l1/dram']);
    expect(trial.usage()).toEqual([`mp-1 l1/dram 2 2 ${large + 100} -`]);
    expect(trial.metrics.events.stored.repeated).toBe(1);
    trial.take(remove(4, 'a'));
    expect(trial.usage()).toEqual(['mp-1 l1/dram 1 1 100 -']);
  });

  test('holders beyond the bound are counted, and their removal changes nothing', () => {
    const trial = new CoordinatorTrial({ maxHolders: 2 });
    const many = [wireEntry('a'), wireEntry('a', { kv_rank: 1 }), wireEntry('b')];
    trial.take(wireBatch(1, { entries: many }), remove(2, 'b'));
    expect(trial.held()).toEqual(['mp-1//a l1/dram']);
    expect(trial.view.instances.account).toMatchObject({ holders: 2, untracked: 1 });
    trial.take(remove(3, 'a'), store(4, 'b'));
    expect(trial.held()).toEqual(['mp-1//a l1/dram', 'mp-1//b l1/dram']);
  });

  test('what is given up is looked for where something is held alone', () => {
    const trial = new CoordinatorTrial();
    const salts = Array.from({ length: 20 }, (_, at) => wireEntry('a', { cache_salt: `s${at}` }));
    trial.take(wireBatch(1, { entries: salts }), store(2, 'b', L2));
    trial.take(wireBatch(3, { entries: salts, event_type: 'delete' }));
    const given: string[] = [];
    const cleared = trial.state.cleared.bind(trial.state);
    trial.state.cleared = (scope, cause) => {
      given.push(scope.tenantId);
      return cleared(scope, cause);
    };
    trial.take(wireBatch(9));
    expect([given, trial.held()]).toEqual([['m1'], []]);
    trial.take(wireBatch(19));
    expect(given).toHaveLength(1);
  });

  test('bytes of their names are bounded too, and given back', () => {
    const trial = new CoordinatorTrial({ maxHolders: 2000 });
    const { account } = trial.view.instances;
    const model_name = '模'.repeat(1000);
    const many = Array.from({ length: 1000 }, (_, at) => wireEntry(`c${at}`, { model_name }));
    trial.take(wireBatch(1, { entries: many }));
    expect(account.holders + account.untracked).toBe(1000);
    expect([account.untracked > 600, account.keyBytes <= account.maxKeyBytes]).toEqual([
      true,
      true,
    ]);
    trial.take(wireBatch(2, { event_type: 'delete', entries: many.slice(0, 100) }));
    const kept = account.holders;
    trial.take(wireBatch(3, { entries: many.slice(900) }));
    expect(account.holders).toBe(kept + 100);
    trial.take(wireBatch(9));
    expect(account).toMatchObject({ holders: 0, keyBytes: 0 });
  });

  test('media beyond the bound hold nothing, and leave room for those of other stores', () => {
    const trial = new CoordinatorTrial();
    for (let seq = 1; seq <= 13; seq++) trial.take(store(seq, 'a', { backend: `b${seq}` }));
    trial.take(
      store(1, 'a', { ...OTHER, backend: 'b1' }),
      store(2, 'a', { ...OTHER, backend: 'x' }),
    );
    expect(trial.usage()).toHaveLength(13);
    expect(trial.view.instances.account.untracked).toBe(2);
    expect(trial.state.media.bitOf('cpu')).toBeGreaterThan(0);
  });
});

describe('numbers', () => {
  test('old ones, and those of an older life, are dropped', () => {
    const trial = new CoordinatorTrial();
    expect(trial.take(store(1, 'a'), remove(2, 'a'), store(1, 'a'), store(2, 'b'))).toEqual({
      applied: 2,
      duplicates: 2,
      stale: 0,
    });
    expect(trial.take(store(3, 'c', { incarnation: 999 }))).toMatchObject({ stale: 1 });
    expect(trial.held()).toEqual([]);
    expect(trial.counts.batches).toEqual({ applied: 2, duplicates: 2, stale: 1 });
  });

  test('a gap gives up what the server holds, and the pools that it mounts, before it is applied', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a'), store(2, 'b', L2), store(3, 'c', POOL), store(1, 'd', OTHER));
    trial.take(store(2, 'e', { ...OTHER, ...POOL, backend: 'nfs' }));
    trial.take(store(6, 'f'));
    expect(trial.held()).toEqual(['mp-1//f l1/dram', 'mp-2//d l1/dram', 'shared:l2/nfs//e l2/nfs']);
    expect(trial.told.filter((line) => line.startsWith('x'))).toEqual([
      'x mp-1 m1 invalidated',
      'x shared:l2/s3 m1 invalidated',
    ]);
    expect(trial.losses).toEqual(['mp-1 2']);
    expect(trial.metrics.lostMessages).toBe(2);
    expect(trial.view.instances.find('mp-1')).toMatchObject({ isWhole: false, lostBatches: 2 });
    expect(trial.usage()[0]).toBe('mp-1 l1/dram 1 1 100 -');
    expect(trial.view.instances.account.holders).toBe(3);
  });

  test('whoever joins late has lost nothing, and is not whole', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(7, 'a'));
    expect(trial.held()).toEqual(['mp-1//a l1/dram']);
    expect(trial.metrics.lostMessages).toBe(0);
    expect(trial.view.instances.find('mp-1')?.isWhole).toBe(false);
  });
});

describe('lives', () => {
  test('a restart gives up what the server holds itself, and no pool', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a'), store(2, 'b', L2), store(3, 'c', POOL));
    trial.take(store(1, 'd', { incarnation: 1001 }));
    expect(trial.held()).toEqual(['mp-1//d l1/dram', 'shared:l2/s3//c l2/s3']);
    expect(trial.metrics.restarts).toBe(1);
    expect(trial.losses).toEqual([]);
    expect(trial.view.instances.find('mp-1')?.isWhole).toBe(true);
  });

  test('a new life whose first batches are missing is a gap too', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a', POOL), store(3, 'b', { incarnation: 1001 }));
    expect(trial.held()).toEqual(['mp-1//b l1/dram']);
    expect(trial.losses).toEqual(['mp-1 2']);
  });

  test('a server that leaves takes its own along, whatever it says at its end', () => {
    const trial = new CoordinatorTrial();
    trial.view.noteMember('mp-1');
    trial.take(store(1, 'a'), store(2, 'c', POOL), store(3, 'd', POOL));
    trial.view.leave('mp-1');
    expect(trial.told.at(-1)).toBe('x mp-1 m1 event');
    expect(trial.take(store(4, 'b'), remove(5, 'd', POOL))).toMatchObject({ applied: 2 });
    expect(trial.held()).toEqual(['shared:l2/s3//c l2/s3']);
    expect(trial.usage()).toEqual(['* l2/s3 1 1 100 -']);
  });

  test('it may come again in the same life, with what it had told meanwhile missing', () => {
    const trial = new CoordinatorTrial();
    trial.view.noteMember('mp-1');
    trial.take(store(1, 'a'), store(2, 'c', POOL));
    trial.nowMs = 30_001;
    trial.view.sweep();
    expect(trial.told.at(-1)).toBe('x mp-1 m1 invalidated');
    expect(trial.counts.expiredInstances).toBe(1);
    trial.view.noteMember('mp-1');
    trial.take(store(9, 'b'));
    expect(trial.held()).toEqual(['mp-1//b l1/dram']);
    expect(trial.losses).toEqual(['mp-1 6']);
    expect(trial.view.instances.find('mp-1')?.isWhole).toBe(false);
  });

  test.each([999, 1001])('or in life %i, though it has not registered yet', (incarnation) => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a'));
    trial.view.leave('mp-1');
    trial.take(store(1, 'b', { incarnation }));
    expect(trial.held()).toEqual(['mp-1//b l1/dram']);
    expect(trial.take(store(2, 'c', { incarnation: 998 }))).toMatchObject({ stale: 1 });
  });

  test('one that registers may have its clock set back, but no life that was seen begins again', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a'), store(1, 'b', { incarnation: 1001 }));
    trial.view.noteRegistration('mp-1');
    expect(trial.take(store(2, 'x'))).toMatchObject({ stale: 1 });
    trial.take(store(1, 'c', { incarnation: 900 }));
    expect(trial.held()).toEqual(['mp-1//c l1/dram']);
    const late = [store(2, 'x', { incarnation: 1001 }), store(1, 'x', { incarnation: 800 })];
    expect(trial.take(...late)).toMatchObject({ stale: 2 });
    expect(trial.metrics.restarts).toBe(2);
  });

  test('of a server that has only registered nothing is known', () => {
    const trial = new CoordinatorTrial();
    trial.view.noteRegistration('mp-1');
    expect(trial.view.instances.find('mp-1')).toMatchObject({ isWhole: false, isMember: true });
    trial.take(wireBatch(1));
    expect(trial.view.instances.find('mp-1')?.isWhole).toBe(true);
  });

  test('silence means something of members alone, and batches are heard too', () => {
    const trial = new CoordinatorTrial();
    trial.view.noteMember('mp-2');
    trial.take(store(1, 'a'), store(1, 'b', OTHER));
    trial.nowMs = 30_001;
    trial.take(store(2, 'c', OTHER));
    trial.nowMs = 60_000;
    trial.view.sweep();
    expect(trial.held()).toEqual(['mp-1//a l1/dram', 'mp-2//b l1/dram', 'mp-2//c l1/dram']);
    trial.nowMs = 60_002;
    trial.view.sweep();
    expect(trial.held()).toEqual(['mp-1//a l1/dram']);
    expect(trial.counts.expiredInstances).toBe(1);
  });

  test('where there are too many, the one that was silent longest goes', () => {
    const trial = new CoordinatorTrial();
    for (let number = 0; number <= MAX_INSTANCES; number++) {
      trial.nowMs++;
      trial.take(store(1, 'a', { instance_id: `mp-${number}` }));
    }
    expect(trial.view.instances.size).toBe(MAX_INSTANCES);
    expect(trial.view.instances.find('mp-0')).toBeNull();
    expect(trial.counts.crowdedOutInstances).toBe(1);
    trial.take(store(2, 'b', { instance_id: 'mp-1' }), store(1, 'a', { instance_id: 'mp-0' }));
    expect(trial.view.instances.find('mp-1')).not.toBeNull();
    expect(trial.view.instances.find('mp-2')).toBeNull();
  });

  test('a post brings only so many new servers: batches of further ones are dropped and counted', () => {
    const trial = new CoordinatorTrial();
    const ids = Array.from({ length: 520 }, (_, number) => `mp-${number}`);
    const taken = trial.take(...ids.map((instance_id) => store(1, 'a', { instance_id })));
    expect(taken).toEqual({ applied: 512, duplicates: 0, stale: 8 });
    expect([trial.view.instances.size, trial.counts.crowdedOutInstances]).toEqual([512, 8]);
    trial.take(store(2, 'b', POOL), store(2, 'b', { instance_id: 'mp-519' }));
    expect(trial.view.instances.find('mp-519')?.isWhole).toBe(false);
    expect(trial.view.instances.size).toBe(513);
  });

  test('what a batch that is dropped deletes in a pool may be anything in it', () => {
    const trial = new CoordinatorTrial();
    const others = Array.from({ length: 513 }, (_, number) =>
      remove(1, 'c', { ...POOL, instance_id: `other-${number}` }),
    );
    trial.take(store(1, 'b', POOL));
    trial.take(...others.slice(0, 512));
    expect(trial.held()).toEqual(['shared:l2/s3//b l2/s3']);
    trial.take(...others.map((one, at) => ({ ...one, instance_id: `more-${at}` })));
    expect(trial.held()).toEqual([]);
  });

  test('what one of very many held is found without going through the scopes of all others', () => {
    const trial = new CoordinatorTrial();
    let lists = 0;
    const scopes = trial.state.scopes.bind(trial.state);
    trial.state.scopes = () => {
      lists++;
      return scopes();
    };
    for (let number = 0; number < MAX_INSTANCES + 20; number++) {
      const instance_id = `mp-${number}`;
      trial.take(
        store(1, 'a', { instance_id }),
        store(2, 'b', { instance_id }, { cache_salt: 't' }),
      );
    }
    expect([trial.counts.crowdedOutInstances, lists]).toEqual([20, 0]);
    const held = (): string[] => trial.held().filter((row) => row.startsWith('mp-30/'));
    expect(held()).toEqual(['mp-30//a l1/dram', 'mp-30/t/b l1/dram']);
    trial.view.leave('mp-30');
    expect(held()).toEqual([]);
  });
});

describe('pools', () => {
  test('an object goes when any server deletes it', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a', POOL), store(1, 'a', { ...OTHER, ...POOL }));
    expect(trial.usage()).toEqual(['* l2/s3 1 1 100 -']);
    trial.take(remove(2, 'a', { ...OTHER, ...POOL }));
    expect(trial.held()).toEqual([]);
  });

  test('the same backend of one server alone is another', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a', POOL), store(2, 'a', { ...POOL, shared: false }));
    expect(trial.held()).toEqual(['mp-1//a l2/s3', 'shared:l2/s3//a l2/s3']);
  });

  test('a server whose batches were not all seen may have deleted there', () => {
    const trial = new CoordinatorTrial();
    trial.take(store(1, 'a', POOL));
    trial.take(wireBatch(5, { ...OTHER, ...POOL, event_type: 'access' }));
    expect(trial.held()).toEqual([]);
    trial.take(store(2, 'b', POOL));
    trial.take(store(6, 'c', { ...OTHER, ...POOL }));
    expect(trial.held()).toEqual(['shared:l2/s3//b l2/s3', 'shared:l2/s3//c l2/s3']);
  });

  test('a pool that it has only read is given up with its gap', () => {
    const trial = new CoordinatorTrial();
    trial.take(wireBatch(1, { ...OTHER, ...POOL, event_type: 'access' }));
    trial.take(store(1, 'a', POOL), store(3, 'b', OTHER));
    expect(trial.held()).toEqual(['mp-2//b l1/dram']);
  });
});

describe('capacity', () => {
  const config = (seq: number, revision: number, capacity: number, fields: WireFields = {}) =>
    wireBatch(seq, {
      event_type: 'config',
      capacity_revision: revision,
      capacity_bytes: capacity,
      ...fields,
    });

  test('batches of one declaration add up, a newer one takes the place of all', () => {
    const trial = new CoordinatorTrial();
    trial.take(config(1, 1, 500), config(2, 1, 900, L2), config(3, 1, 7000, POOL));
    expect(trial.usage()).toEqual([
      'mp-1 l1/dram 0 0 0 500',
      'mp-1 l2/fs 0 0 0 900',
      '* l2/s3 0 0 0 7000',
    ]);
    trial.take(config(4, 2, 600), config(5, 1, 1, L2));
    expect(trial.usage().slice(0, 2)).toEqual(['mp-1 l1/dram 0 0 0 600', 'mp-1 l2/fs 0 0 0 -']);
    trial.take(config(6, 2, 0));
    expect(trial.usage()[0]).toBe('mp-1 l1/dram 0 0 0 -');
  });

  test('it counts anew in each life', () => {
    const trial = new CoordinatorTrial();
    trial.take(config(1, 9, 500), config(1, 1, 600, { incarnation: 1001 }));
    expect(trial.usage()).toEqual(['mp-1 l1/dram 0 0 0 600']);
  });
});
