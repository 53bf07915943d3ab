/**
 * A store of 1,000,000 objects: events a second from payload to state, bytes of memory an object, and how
 * long a comparison with the master takes, which answers from a process of its own.
 *
 *   node bench/object-state.mjs [--objects N]
 *
 * Messages as a Mooncake master sends them, 64 events each, with keys of 50 bytes; first all objects are
 * stored, then all are stored on a second medium, then all of the first and half of the second go. The
 * comparison begins with nothing held, then again with everything.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Packr } from 'msgpackr';
import { MooncakeReader } from '../dist/engines/mooncake/message-reader.js';
import { SourceMetrics } from '../dist/metrics/source-metrics.js';
import { MasterClient } from '../dist/stores/mooncake/master-client.js';
import { MooncakeView } from '../dist/stores/mooncake/mooncake-view.js';
import { Reconciliation } from '../dist/stores/mooncake/reconciliation.js';
import { ObjectState } from '../dist/stores/objects/object-state.js';
import { SYSTEM_STORE_CLOCK } from '../dist/stores/store-clock.js';
import { objectKey } from './object-keys.mjs';
import { table } from './report.mjs';

const EVENTS_PER_MESSAGE = 64;

const { values } = parseArgs({ options: { objects: { type: 'string', default: '1000000' } } });
const objectCount = Number(values.objects);
const packr = new Packr({ useRecords: false, variableMapSize: true });

function eventOf(eventType, id, medium) {
  return {
    event_id: id,
    timestamp: 1_790_000_000_000n,
    event_type: eventType,
    type: eventType === 'stored' ? 'BlockStored' : 'BlockRemoved',
    model_name: null,
    block_size: null,
    additional_salt: null,
    lora_name: null,
    tenant_id: 'default',
    backend_id: 'mooncake-1',
    medium,
    dp_rank: 0,
    group_id: null,
    object_key: objectKey(id),
    seq_hashes: [],
    block_hashes: [],
    ...(eventType === 'stored' && { session_id: null }),
    base_block_idx: null,
    ...(eventType === 'stored' && { parent_hash: null, token_ids: null, parent_block_hash: null }),
  };
}

function payloadsOf(eventType, medium, count, from) {
  const payloads = [];
  for (let first = from; first < from + count; first += EVENTS_PER_MESSAGE) {
    const events = [];
    for (let id = first; id < Math.min(first + EVENTS_PER_MESSAGE, from + count); id++) {
      events.push(eventOf(eventType, id, medium));
    }
    payloads.push(packr.pack([1_790_000_000_000n, events, 0]));
  }
  return payloads;
}

let changes = 0;
const state = new ObjectState({
  maxObjects: objectCount,
  maxKeyBytes: 1 << 30,
  maxScopes: 16,
  maxAttributeSets: 1000,
  onChange: () => {
    changes++;
  },
});
const reader = new MooncakeReader();

function apply({ eventType, objectKey, medium, ...event }) {
  if (eventType === 'removed') state.removed(scope(event), objectKey, medium);
  else state.stored(scope(event), objectKey, medium, event);
}

function scope({ backendId, tenantId }) {
  return { source: 'mooncake', backendId, tenantId };
}

/** Seconds from payloads to state, the making of the payloads left out. */
function run(eventType, medium, count) {
  let seconds = 0;
  // In parts: a million payloads at once would be most of the memory that is measured.
  const part = Math.min(count, 100_000);
  for (let from = 0; from < count; from += part) {
    const payloads = payloadsOf(eventType, medium, Math.min(part, count - from), from);
    const startMs = performance.now();
    for (const payload of payloads) {
      const message = reader.read(payload);
      if (typeof message === 'string' || message.faults.length > 0) throw new Error('unreadable');
      for (const event of message.events) apply(event);
    }
    seconds += (performance.now() - startMs) / 1000;
  }
  return seconds;
}

const rows = [];
for (const [what, eventType, medium, count] of [
  ['stored, cpu', 'stored', 'cpu', objectCount],
  ['stored, disk', 'stored', 'disk', objectCount],
  ['removed, cpu', 'removed', 'cpu', objectCount],
  ['removed, disk: gone', 'removed', 'disk', objectCount / 2],
]) {
  const seconds = run(eventType, medium, count);
  const held = state.objectCount;
  rows.push([
    what,
    Math.round(count / seconds).toLocaleString('en'),
    held.toLocaleString('en'),
    (state.bytes / held).toFixed(0),
  ]);
}
if (changes !== objectCount * 3.5) throw new Error('events lost');
process.stdout.write(`${table(['events', 'a second', 'objects held', 'bytes an object'], rows)}\n`);

async function compared() {
  const program = fileURLToPath(new URL('object-master.mjs', import.meta.url));
  const child = fork(program, [String(objectCount)]);
  const [port] = await once(child, 'message');
  const master = new MasterClient(`http://127.0.0.1:${port}`);
  const metrics = new SourceMetrics();
  const held = new ObjectState({
    maxObjects: objectCount,
    maxKeyBytes: 1 << 30,
    maxScopes: 16,
    maxAttributeSets: 1000,
    onChange: () => undefined,
  });
  const ignored = () => undefined;
  const told = { onLoss: ignored, onMissed: ignored, onBackend: ignored };
  const view = new MooncakeView({
    state: held,
    metrics,
    hasMaster: true,
    maxHeldBytes: 1 << 20,
    ...told,
  });
  const seconds = [];
  for (const what of ['nothing held', 'everything held']) {
    const startMs = performance.now();
    await new Reconciliation({
      state: held,
      view,
      master,
      metrics,
      clock: SYSTEM_STORE_CLOCK,
      runNumber: seconds.length + 1,
      keysPerSecond: Number.POSITIVE_INFINITY,
      givesUp: false,
      isStopped: () => false,
    }).run();
    if (held.objectCount !== objectCount) throw new Error('objects lost');
    seconds.push([what, ((performance.now() - startMs) / 1000).toFixed(1)]);
  }
  master.stop();
  child.kill();
  return seconds;
}

process.stdout.write(`\n${table(['comparison', 'seconds'], await compared())}\n`);
