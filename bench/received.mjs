/** What a run's subscriber has got: messages out of a stream of bytes, and whether their numbers have holes. */
import { Unpackr } from 'msgpackr';
import { COMMAND, GREETING_BYTES, LONG, MORE } from '../dist/connections/zmtp/handshake.js';

const unpackr = new Unpackr({ useRecords: false, int64AsType: 'bigint' });
const LINE_END = '\r\n';

/** The payloads of all `MSG` in a NATS stream, in order; one that is torn may end anywhere. */
export function splitNatsStream(bytes, isTorn = false) {
  const messages = [];
  for (let at = 0; at < bytes.length; ) {
    const lineEnd = bytes.indexOf(LINE_END, at);
    if (lineEnd < 0 && isTorn) break;
    if (lineEnd < 0) throw new Error('the NATS stream ends within a line');
    const line = bytes.toString('latin1', at, lineEnd);
    at = lineEnd + 2;
    if (!line.startsWith('MSG ')) continue;
    const length = Number(line.slice(line.lastIndexOf(' ') + 1));
    if (at + length > bytes.length && isTorn) break;
    if (at + length > bytes.length) throw new Error('the NATS stream ends within a message');
    messages.push(bytes.subarray(at, at + length));
    at += length + 2;
  }
  return messages;
}

/** Version and length, in front of an envelope on the ZMQ plane. */
export const HEAD_BYTES = 5;

/** The envelopes in the last frames of all messages that one ZMTP peer has sent, in order. */
export function splitZmtpStream(bytes) {
  const messages = [];
  for (let at = GREETING_BYTES; at < bytes.length; ) {
    const flags = bytes[at];
    const isLong = (flags & LONG) !== 0;
    const bodyAt = at + (isLong ? 9 : 2);
    const end = bodyAt + (isLong ? Number(bytes.readBigUInt64BE(at + 1)) : bytes[at + 1]);
    if (end > bytes.length) throw new Error('the ZMTP stream ends within a frame');
    const isLast = (flags & (MORE | COMMAND)) === 0;
    if (isLast) messages.push(bytes.subarray(bodyAt + HEAD_BYTES, end));
    at = end;
  }
  return messages;
}

/** Messages that are not looked into; `onMessage` is told the number that each begins with, and its index. */
export function countOf(messages, onMessage = () => undefined) {
  for (const [index, message] of messages.entries()) onMessage(message.readBigUInt64BE(), index);
  return sizeOf(messages);
}

function sizeOf(messages) {
  return {
    messages: messages.length,
    bytes: messages.reduce((sum, { length }) => sum + length, 0),
  };
}

/**
 * Events and blocks in envelopes, and `fault`, what is wrong with their numbers; null where nothing.
 * `onStored` is told each stored block's hash, and the index of its message.
 */
export function contentOf(messages, onStored = () => undefined) {
  const seen = { events: 0, blocks: 0, lastEventId: 0, fault: null };
  for (const [index, message] of messages.entries()) {
    const { sequence, payload } = unpackr.unpack(message);
    if (Number(sequence) !== index) seen.fault ??= `message ${index} has the number ${sequence}`;
    for (const { event } of unpackr.unpack(payload)) {
      addEvent(seen, event);
      for (const { block_hash } of event.data.stored?.blocks ?? []) onStored(block_hash, index);
    }
  }
  return { ...sizeOf(messages), ...seen };
}

/** Each message once: what a plane sends anew after it was away is the same, under its number of before. */
export function distinct(messages) {
  const numbers = new Set();
  return messages.filter((message) => {
    const { sequence } = unpackr.unpack(message);
    if (numbers.has(sequence)) return false;
    numbers.add(sequence);
    return true;
  });
}

function addEvent(seen, { event_id, data }) {
  const eventId = Number(event_id);
  if (eventId !== seen.lastEventId + 1) {
    seen.fault ??= `event ${eventId} comes after event ${seen.lastEventId}`;
  }
  seen.lastEventId = eventId;
  seen.events++;
  seen.blocks += data.stored?.blocks.length ?? data.removed?.block_hashes.length ?? 0;
}
