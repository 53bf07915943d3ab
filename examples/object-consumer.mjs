/**
 * A consumer of `kv-objects`: keeps a copy of what a relay's stores hold, and prints each change of it.
 *
 *   node examples/object-consumer.mjs [--http http://127.0.0.1:9464]
 *
 * Follows  the stream on the plane that the relay uses, ZMQ or NATS, and asks over HTTP for the rest: a
 *          snapshot first, ranges where ids leave a gap, a snapshot again where a range is gone or the
 *          relay has another publisher id.
 * Needs    the packages msgpackr, and zeromq or nats. docs/objects.md has the schema.
 */
import { parseArgs } from 'node:util';
import { unpack } from 'msgpackr';

const { values } = parseArgs({
  options: { http: { type: 'string', default: 'http://127.0.0.1:9464' } },
});

/** Media by object, as of the event `lastId`. */
class ObjectCopy {
  media = new Map();
  lastId = 0;

  /** Events give all the media an object has, so one that was applied before does no harm. */
  apply({ event_id, type, source, backend_id, tenant_id, object_key, media }) {
    const scope = JSON.stringify([source, backend_id, tenant_id]);
    if (type === 'cleared') {
      for (const name of this.media.keys()) if (name.startsWith(scope)) this.media.delete(name);
    } else if (media.length === 0) {
      this.media.delete(scope + object_key);
    } else {
      this.media.set(scope + object_key, media);
    }
    this.lastId = Number(event_id ?? this.lastId);
    if (event_id !== undefined) print(type, tenant_id, object_key ?? '', media ?? []);
  }
}

function print(what, tenant, key, media) {
  process.stdout.write(`${JSON.stringify({ what, tenant, key, media, held: copy.media.size })}\n`);
}

let copy = new ObjectCopy();
let publisherId = '';
/** One message is worked off after the other: asking takes time. */
let turn = Promise.resolve();

async function takeSnapshot() {
  const response = await fetch(`${values.http}/api/objects`);
  if (!response.ok) throw new Error(await response.text());
  const fresh = new ObjectCopy();
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) fresh.apply({ type: 'stored', ...JSON.parse(line) });
  }
  // What changed while the listing was read comes again behind this id.
  fresh.lastId = Number(response.headers.get('x-kvrelay-last-event-id'));
  publisherId = response.headers.get('x-kvrelay-publisher-id');
  copy = fresh;
  print('snapshot', '', '', []);
}

/** Applies events behind `copy.lastId` up to `end`. */
async function catchUp(end) {
  while (copy.lastId < end) {
    const range = `start=${copy.lastId + 1}&end=${end}`;
    const answer = await (await fetch(`${values.http}/api/objects/events?${range}`)).json();
    if (answer.publisher_id !== publisherId || answer.kind !== 'events') return takeSnapshot();
    for (const event of answer.events) copy.apply(event);
  }
}

async function takeMessage(envelope) {
  const { publisher_id, payload } = unpack(envelope);
  if (String(publisher_id) !== publisherId) await takeSnapshot();
  const { version, events } = unpack(payload);
  if (version !== 1) throw new Error(`kv-objects of version ${version}`);
  for (const event of events) {
    const id = Number(event.event_id);
    if (id <= copy.lastId) continue;
    if (id > copy.lastId + 1) await catchUp(id - 1);
    if (id === copy.lastId + 1) copy.apply(event);
  }
}

function onEnvelope(envelope) {
  turn = turn.then(() => takeMessage(envelope));
}

async function followZmq(endpoint) {
  const { Subscriber } = await import('zeromq');
  const socket = new Subscriber({ receiveHighWaterMark: 0 });
  socket.connect(endpoint);
  socket.subscribe('kv-objects');
  await takeSnapshot();
  // Last frame: a version byte, the envelope's length, the envelope.
  for await (const frames of socket) onEnvelope(frames[3].subarray(5));
}

async function followNats(endpoint) {
  const [servers, subject] = endpoint.split(' ');
  const { connect } = await import('nats');
  const client = await connect({ servers: servers.split(','), maxReconnectAttempts: -1 });
  const subscription = client.subscribe(subject);
  await client.flush();
  await takeSnapshot();
  for await (const { data } of subscription) onEnvelope(data);
}

const status = await (await fetch(`${values.http}/api/status`)).json();
if (status.objects === null) throw new Error('the relay follows no store');
const follow = status.plane.kind === 'nats' ? followNats : followZmq;
await follow(status.objects.plane_endpoint);
