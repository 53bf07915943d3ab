/** Mooncake payloads: those of the real master, and what bad ones cost. */
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import { describe, expect, test } from 'vitest';
import { MAX_KEY_BYTES } from '../../../src/engines/mooncake/event-reader.ts';
import { MAX_NAME_BYTES } from '../../../src/engines/mooncake/field-reader.ts';
import type { MooncakeEvent, MooncakeMessage } from '../../../src/engines/mooncake/message.ts';
import { MAX_EVENTS, MooncakeReader } from '../../../src/engines/mooncake/message-reader.ts';
import {
  type CapturedEvent,
  liveCaptures,
  messageOf,
  payloadOf,
} from '../../support/mooncake-captures.ts';
import { mooncakeEvent, mooncakePayload, without } from '../../support/mooncake-messages.ts';
import { fixedSeed } from '../../support/properties.ts';

const packr = new Packr({ useRecords: false });

function read(payload: Uint8Array): MooncakeMessage {
  const message = new MooncakeReader().read(payload);
  if (typeof message === 'string') throw new Error(message);
  return message;
}

function readOne(event: unknown): MooncakeEvent | string {
  const { events, faults } = read(mooncakePayload([event]));
  return events[0] ?? faults[0] ?? 'nothing';
}

/** As the reader should have it. */
function expected(event: CapturedEvent): object {
  const isCleared = event.event_type === 'cleared';
  return {
    eventType: event.event_type,
    eventId: BigInt(event.event_id as number),
    timestampMs: event.timestamp,
    modelName: event.model_name,
    blockSize: event.block_size,
    additionalSalt: event.additional_salt,
    loraName: event.lora_name,
    tenantId: event.tenant_id,
    backendId: event.backend_id,
    medium: event.medium,
    dpRank: event.dp_rank,
    objectKey: isCleared ? null : Buffer.from(event.object_key as string),
    groupId: event.group_id ?? null,
    sessionId: event.session_id ?? null,
  };
}

const OPTIONAL = [
  'model_name',
  'block_size',
  'additional_salt',
  'lora_name',
  'group_id',
  'session_id',
  'seq_hashes',
  'block_hashes',
  'token_ids',
  'parent_hash',
  'base_block_idx',
];

function asPlain(event: MooncakeEvent): object {
  return { ...event, objectKey: event.objectKey && Buffer.from(event.objectKey) };
}

test('every captured message decodes, field by field', () => {
  expect(liveCaptures.length).toBeGreaterThan(30);
  const reader = new MooncakeReader();
  for (const capture of liveCaptures) {
    const [timestampMs, events, dpRank] = messageOf(capture);
    const message = reader.read(payloadOf(capture));
    if (typeof message === 'string') throw new Error(`${capture.case}: ${message}`);
    const { case: name } = capture;
    expect({ name, ...message }).toMatchObject({ name, timestampMs, dpRank, faults: [] });
    expect([name, ...message.events.map(asPlain)]).toEqual([name, ...events.map(expected)]);
  }
});

describe('a field of an envelope that cannot be used costs the event alone', () => {
  const good = mooncakeEvent('stored', 7);
  test.each([
    ['event_id', [null, -1, 1.5, '7']],
    ['timestamp', [null, 1.5, '7', 2n ** 63n]],
    ['event_type', [null, 7]],
    ['model_name', [7, [], 'x'.repeat(MAX_NAME_BYTES + 1)]],
    ['block_size', [-1, 2 ** 32, 1.5, '16']],
    ['additional_salt', [7, {}]],
    ['lora_name', [7, true]],
    ['tenant_id', [null, 7]],
    ['backend_id', [null, 7]],
    ['medium', [null, 7, 'gpu', 'CPU']],
    ['dp_rank', [null, -1, 2 ** 32, '0']],
    ['group_id', [7]],
    ['object_key', [null, 7, Buffer.from('k')]],
    ['session_id', [7]],
    ['seq_hashes', [7, 'x']],
    ['block_hashes', [7, {}]],
    ['token_ids', [7]],
  ])('%s', (name, values) => {
    for (const value of values) {
      // The legacy name would stand in for a nil event type.
      const legacy = name === 'event_type' ? { type: null } : {};
      const bad = { ...good, ...legacy, [name]: value };
      const message = read(mooncakePayload([good, bad, mooncakeEvent('removed', 9)]));
      expect(message.events.map(({ eventId }) => eventId)).toEqual([7n, 9n]);
      expect(message.faults.length).toBe(1);
      expect(message.faults[0]).toMatch(/^(bad|missing)_field$/);
    }
  });

  test.each([
    'event_id',
    'timestamp',
    'tenant_id',
    'backend_id',
    'dp_rank',
    'medium',
    'object_key',
  ])('without %s it is incomplete', (name) =>
    expect(readOne(without(good, name))).toBe('missing_field'),
  );

  test('what may be nil may be left out', () => {
    const bare = without(good, ...OPTIONAL);
    expect(readOne(bare)).toEqual(readOne(good));
  });

  test('an unknown type, and an unknown legacy one, are told from bad ones', () => {
    expect(readOne({ ...good, event_type: 'touched' })).toBe('unknown_type');
    expect(readOne({ ...without(good, 'event_type'), type: 'Ignored' })).toBe('unknown_type');
    expect(readOne(without(good, 'event_type', 'type'))).toBe('missing_field');
    expect(readOne({ ...good, type: 'BlockRemoved' })).toBe('bad_field');
  });

  test('a key that is too long, or no UTF-8, is a bad key', () => {
    expect(readOne({ ...good, object_key: 'x'.repeat(MAX_KEY_BYTES) })).toMatchObject({
      eventType: 'stored',
    });
    expect(readOne({ ...good, object_key: 'x'.repeat(MAX_KEY_BYTES + 1) })).toBe('bad_key');
    const payload = mooncakePayload([{ ...good, object_key: 'zz' }]);
    const at = payload.indexOf('zz');
    payload[at] = 0xff;
    expect(read(payload).faults).toEqual(['bad_key']);
  });
});

test('numbers of 64 bits are exact', () => {
  const ids = [0n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n];
  const events = ids.map((event_id) => ({ ...mooncakeEvent('removed', 1), event_id }));
  expect(read(mooncakePayload(events)).events.map(({ eventId }) => eventId)).toEqual(ids);
  expect(readOne({ ...mooncakeEvent('stored', 1), timestamp: -5 })).toMatchObject({
    timestampMs: -5,
  });
});

test('a payload that is no message costs the message', () => {
  const reader = new MooncakeReader();
  const good = mooncakePayload([mooncakeEvent('stored', 1)]);
  expect(reader.read(good.subarray(0, -3))).toBe('msgpack');
  expect(reader.read(Buffer.alloc(0))).toBe('msgpack');
  expect(reader.read(Buffer.from([0x93, 0x01, 0xc1, 0x00]))).toBe('batch_shape');
  expect(reader.read(packr.pack([1, []]))).toBe('batch_shape');
  expect(reader.read(packr.pack(['now', [], 0]))).toBe('batch_shape');
  expect(reader.read(packr.pack([1, [], null]))).toBe('batch_shape');
  expect(reader.read(packr.pack([1, Array(MAX_EVENTS + 1).fill(0), 0]))).toBe('oversize');
  expect(reader.read(good)).toMatchObject({ faults: [] });
});

test('an event that is no map is one bad field', () => {
  expect(read(packr.pack([1, [7, ['BlockStored'], null], 0])).faults).toEqual(
    Array(3).fill('bad_field'),
  );
});

test('whatever bytes come, the reader answers and reads on', () => {
  const reader = new MooncakeReader();
  const captured = liveCaptures.map(payloadOf);
  const mutated = fc
    .tuple(fc.constantFrom(...captured), fc.nat(), fc.nat(255))
    .map(([payload, at, byte]) => {
      const copy = Buffer.from(payload);
      copy[at % copy.length] = byte;
      return copy;
    });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 80 }), mutated), (bytes) => {
      const message = reader.read(bytes);
      if (typeof message === 'string')
        expect(['msgpack', 'batch_shape', 'oversize']).toContain(message);
      const good = reader.read(mooncakePayload([mooncakeEvent('stored', 3)]));
      expect(good).toMatchObject({ faults: [], events: [{ eventId: 3n }] });
    }),
    { ...fixedSeed, numRuns: 2000 },
  );
});

test('a vLLM event is no Mooncake event: it lacks the envelope', () => {
  const vllm = { type: 'BlockRemoved', block_hashes: [1, 2], medium: 'cpu' };
  expect(readOne(vllm)).toBe('missing_field');
  expect(readOne({ type: 'AllBlocksCleared' })).toBe('missing_field');
});
