/**
 * What Mooncake Store's guide for subscribers states, one test a statement, in the order of the guide. Where
 * a statement is about what the publisher sends, the captures of the real one are the witness.
 */
import { describe, expect, test } from 'vitest';
import type { MooncakeEvent } from '../../../src/engines/mooncake/message.ts';
import { MooncakeReader } from '../../../src/engines/mooncake/message-reader.ts';
import {
  type CapturedEvent,
  capturesOf,
  liveCaptures,
  messageOf,
  payloadOf,
} from '../../support/mooncake-captures.ts';
import { mooncakeEvent, mooncakePayload } from '../../support/mooncake-messages.ts';
import { MooncakeTrial } from '../../support/mooncake-trial.ts';

const events: readonly CapturedEvent[] = liveCaptures.flatMap((capture) => messageOf(capture)[1]);
const ofType = (type: string): CapturedEvent[] => events.filter((one) => one.event_type === type);

function read(payload: Uint8Array): readonly MooncakeEvent[] {
  const message = new MooncakeReader().read(payload);
  if (typeof message === 'string') throw new Error(message);
  return message.events;
}

const alone = (): Promise<MooncakeTrial> => MooncakeTrial.start({ hasMaster: false });

describe('transport', () => {
  test('a message has three frames, the first of them always there and empty', () => {
    for (const { frames_hex } of liveCaptures) {
      expect(frames_hex.length).toBe(3);
      expect(frames_hex[0]).toBe('');
    }
  });

  test('the second frame is 8 bytes, a big-endian number', () => {
    for (const { frames_hex, decoded } of liveCaptures) {
      expect(frames_hex[1]?.length).toBe(16);
      expect(BigInt(`0x${frames_hex[1]}`)).toBe(BigInt(decoded.seq ?? -1));
    }
  });

  test('the payload is an array of time, events and rank', () => {
    for (const capture of liveCaptures) {
      const message = new MooncakeReader().read(payloadOf(capture));
      const [timestampMs, , dpRank] = messageOf(capture);
      expect(message).toMatchObject({ timestampMs, dpRank });
    }
  });

  test('one message carries up to 64 events, each of which is applied', async () => {
    const counts = liveCaptures.map((capture) => messageOf(capture)[1].length);
    expect(Math.max(...counts)).toBeLessThanOrEqual(64);
    const trial = await alone();
    const { master } = trial;
    const all = Array.from({ length: 64 }, (_, index) => master.event('stored', `k${index}`));
    await master.publish(...all);
    await trial.until(() => trial.held().length === 64);
  });
});

describe('event envelope', () => {
  const FIELDS = [
    ['event_id', 'eventId'],
    ['timestamp', 'timestampMs'],
    ['event_type', 'eventType'],
    ['model_name', 'modelName'],
    ['block_size', 'blockSize'],
    ['additional_salt', 'additionalSalt'],
    ['lora_name', 'loraName'],
    ['tenant_id', 'tenantId'],
    ['backend_id', 'backendId'],
    ['medium', 'medium'],
    ['dp_rank', 'dpRank'],
  ] as const;

  test.each(FIELDS)('every event has %s, and it is read', (wire, field) => {
    for (const capture of liveCaptures) {
      const [, captured] = messageOf(capture);
      const values = read(payloadOf(capture)).map((event) => event[field]);
      const expected = captured.map((event) => event[wire]);
      expect(captured.every((event) => wire in event)).toBe(true);
      expect(values).toEqual(wire === 'event_id' ? expected.map(Number).map(BigInt) : expected);
    }
  });

  test('stored and removed add the group, the key, the hashes and the block index', () => {
    for (const event of [...ofType('stored'), ...ofType('removed')]) {
      expect(Object.keys(event)).toEqual(
        expect.arrayContaining(['group_id', 'object_key', 'seq_hashes', 'base_block_idx']),
      );
    }
  });

  test('only stored carries the parent and the tokens', () => {
    for (const event of events) {
      const isStored = event.event_type === 'stored';
      expect(['parent_hash', 'token_ids'].map((field) => field in event)).toEqual([
        isStored,
        isStored,
      ]);
    }
  });
});

describe('keys are not interpreted', () => {
  test('a key comes through as it was put, whatever it looks like', async () => {
    const trial = await alone();
    const { master } = trial;
    for (const key of ['modèle/キー@0', 'm@1@deadbeef', 'a b', '__proto__']) await master.put(key);
    await trial.until(() => trial.held().length === 4);
    expect(trial.held()).toContain('modèle/キー@0 cpu');
  });

  test('hashes are empty lists, tokens, parent and block index nil', () => {
    for (const event of [...ofType('stored'), ...ofType('removed')]) {
      const { seq_hashes, block_hashes = [], token_ids = null, parent_hash = null } = event;
      expect([seq_hashes, block_hashes, token_ids, parent_hash, event.base_block_idx]).toEqual([
        [],
        [],
        null,
        null,
        null,
      ]);
    }
  });

  test('no hash, token or depth of an event is made use of', () => {
    const filled = { seq_hashes: [1, 2], block_hashes: [3], token_ids: [4], base_block_idx: 5 };
    const [event] = read(mooncakePayload([mooncakeEvent('stored', 1, filled)]));
    const [plain] = read(mooncakePayload([mooncakeEvent('stored', 1)]));
    expect(event).toEqual(plain);
  });
});

describe('media', () => {
  test('there are cpu and disk, one an event', () => {
    const media = [...ofType('stored'), ...ofType('removed')].map(({ medium }) => medium);
    expect(new Set(media)).toEqual(new Set(['cpu', 'disk']));
  });
});

describe('stored', () => {
  test('it announces the object on its medium', async () => {
    const trial = await alone();
    await trial.master.put('k', 'disk');
    await trial.until(() => trial.held().join() === 'k disk');
  });

  test('a repeat changes nothing, and counts for nothing', async () => {
    const trial = await alone();
    const { master, source } = trial;
    for (let count = 0; count < 3; count++) await master.put('k');
    await master.publish(master.event('removed', 'k'));
    await trial.taken(4);
    expect(trial.told).toEqual(['+k cpu', '-k']);
    expect(source.metrics.events.stored).toEqual({ received: 3, applied: 1, repeated: 2 });
  });

  test('an upsert is removed, then stored, and there is no update', async () => {
    const types = capturesOf('upsert/existing').flatMap((one) =>
      messageOf(one)[1].map(({ event_type }) => event_type),
    );
    expect(types).toEqual(['removed', 'stored']);
    const trial = await alone();
    const { master } = trial;
    await master.put('k');
    await master.publish(master.event('removed', 'k'));
    await master.publish(master.event('stored', 'k', { group_id: 'new' }));
    await trial.taken(3);
    expect(trial.told).toEqual(['+k cpu', '-k', '+k cpu']);
  });
});

describe('removed', () => {
  test('it takes away its medium alone, and the object with the last one', async () => {
    const trial = await alone();
    const { master } = trial;
    await master.put('k', 'cpu');
    await master.put('k', 'disk');
    await master.publish(master.event('removed', 'k', { medium: 'cpu' }));
    await trial.taken(3);
    expect(trial.held()).toEqual(['k disk']);
    await master.publish(master.event('removed', 'k', { medium: 'disk' }));
    await trial.until(() => trial.held().length === 0);
  });

  test('repeats are idempotent: no count falls below what there is', async () => {
    const trial = await alone();
    const { master } = trial;
    await master.put('k', 'cpu');
    await master.put('k', 'disk');
    for (let count = 0; count < 3; count++) await master.publish(master.event('removed', 'k'));
    await master.put('k', 'cpu');
    await trial.taken(6);
    expect(trial.held()).toEqual(['k cpu,disk']);
  });
});

describe('cleared', () => {
  test('it is an envelope alone, its medium nil', () => {
    for (const event of ofType('cleared')) {
      const absent = ['object_key', 'group_id', 'seq_hashes', 'block_hashes', 'base_block_idx'];
      expect(absent.filter((field) => field in event)).toEqual([]);
      expect(event.medium).toBe(null);
    }
    expect(ofType('cleared').length).toBeGreaterThan(0);
  });

  test('every object of its backend and tenant is gone, and no other', async () => {
    const trial = await alone();
    const { master } = trial;
    await master.publish(
      master.event('stored', 'a'),
      master.event('stored', 'a', { tenant_id: 't1' }),
      master.event('stored', 'a', { backend_id: 'other' }),
      master.event('cleared'),
    );
    await trial.taken(1);
    expect([trial.held(), trial.held('t1'), trial.held('default', 'other')]).toEqual([
      [],
      ['a cpu'],
      ['a cpu'],
    ]);
  });

  test('none is sent for a tenant without objects, nor while one is leased', () => {
    const nothing = capturesOf('remove_all/nothing-held');
    expect(nothing.map(({ decoded }) => decoded.kind)).toEqual(['nothing']);
    const leased = capturesOf('remove_all/one-object-leased').flatMap((one) => messageOf(one)[1]);
    expect(new Set(leased.map(({ event_type }) => event_type))).toEqual(new Set(['removed']));
  });
});

describe('legacy compatibility', () => {
  test.each([
    ['stored', 'BlockStored'],
    ['removed', 'BlockRemoved'],
    ['cleared', 'AllBlocksCleared'],
  ])('%s has %s beside it, and either name alone is understood', (eventType, type) => {
    const both = ofType(eventType).filter((event) => 'type' in event);
    expect(both.length).toBeGreaterThan(0);
    expect(both.every((event) => event.type === type)).toBe(true);
    const event = mooncakeEvent(eventType as 'stored', 1);
    const { type: _type, ...named } = event;
    const { event_type: _eventType, ...legacy } = event;
    expect(read(mooncakePayload([named]))).toEqual(read(mooncakePayload([event])));
    expect(read(mooncakePayload([legacy]))).toEqual(read(mooncakePayload([event])));
  });

  test('a stored event has a nil parent, objects an empty list, under the legacy names too', () => {
    const legacy = ofType('stored').filter((event) => 'type' in event);
    expect(legacy.every((event) => event.parent_block_hash === null)).toBe(true);
    expect(legacy.every((event) => JSON.stringify(event.block_hashes) === '[]')).toBe(true);
  });

  test('without the flag only the new names come', () => {
    const captured = capturesOf('no-legacy/configured/stored').flatMap((one) => messageOf(one)[1]);
    for (const event of captured) {
      expect(['type', 'block_hashes', 'parent_block_hash'].some((name) => name in event)).toBe(
        false,
      );
    }
  });
});

describe('ordering, loss and recovery', () => {
  test('events are applied by their ids within a message', async () => {
    const trial = await alone();
    const { master } = trial;
    const stored = master.event('stored', 'k');
    const removed = master.event('removed', 'k');
    await master.publish(removed, stored);
    await trial.taken(1);
    expect(trial.told).toEqual(['+k cpu', '-k']);
  });

  test('dropped events leave their numbers out, so that a gap is always seen', async () => {
    const trial = await alone();
    const { master, source } = trial;
    await master.put('a');
    master.lose(694);
    await master.put('b');
    await trial.taken(2);
    expect(source.metrics.lostMessages).toBe(694);
  });

  test('at a gap the state is invalidated where nobody can be asked', async () => {
    const trial = await alone();
    const { master } = trial;
    await master.put('a');
    master.lose(1);
    await master.put('b');
    await trial.taken(2);
    expect(trial.held()).toEqual(['b cpu']);
  });

  test('at a gap the state is compared with the master where there is one', async () => {
    const trial = await MooncakeTrial.startHolding('a');
    const { master, source } = trial;
    const { complete } = source.metrics.reconciliations;
    await master.put('missed', 'disk', false);
    master.lose(1);
    await master.put('b');
    await trial.reconciled(complete);
    trial.expectAsMaster();
  });

  test('who joins late gets nothing of what was stored, and asks the master for it', async () => {
    const before = (master: MooncakeTrial['master']): void => void master.put('a', 'cpu', false);
    const without = await MooncakeTrial.start({ hasMaster: false, before });
    await without.master.put('b');
    await without.taken(1);
    expect(without.held()).toEqual(['b cpu']);
    const asking = await MooncakeTrial.start({ before });
    expect(asking.held('default', '')).toEqual(['a cpu']);
  });

  test('numbers that begin again are a restart: compared, and the new events are kept', async () => {
    const trial = await MooncakeTrial.start();
    const { master, source } = trial;
    for (const key of ['a', 'b']) await master.put(key);
    await trial.until(() => trial.held().length === 2);
    await trial.settled();
    const { complete } = source.metrics.reconciliations;
    master.restart();
    await master.put('new');
    await trial.reconciled(complete);
    expect(source.metrics.restarts).toBe(1);
    expect(trial.held()).toEqual(['new cpu']);
  });
});

describe('observability', () => {
  test.each([
    [{ enabled: false }, /publishes no KV events/],
    [{ skipped_keyless_events: 4 }, /want of a key/],
  ])('a status with %j is told with its remedy', async (status, message) => {
    const trial = await MooncakeTrial.start({
      before: (master) => {
        master.status = status;
      },
    });
    const notices = (): string =>
      trial.source
        .reading()
        .notices.map((notice) => `${notice.message}: ${notice.remedy}`)
        .join('\n');
    await trial.until(() => message.test(notices()), 'the notice');
  });

  test('without keys only clears come, and they are understood', () => {
    const captured = capturesOf('no-object-key').filter(({ decoded }) => decoded.kind === 'live');
    const types = captured.flatMap((one) => read(payloadOf(one)).map(({ eventType }) => eventType));
    expect(types).toEqual(['cleared']);
  });
});
