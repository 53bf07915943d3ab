/**
 * What publishers and subscribers of ZMTP 3 say to each other beside messages: NULL mechanism.
 *
 * greeting   [0] ff  [1..9) any  [9] 7f  [10] major  [11] minor  [12..32) mechanism, padded with 0  [32] as-server  [33..64) 0
 * READY      [0] 5 "READY", then for each property: u8 length, name, u32 BE length, value
 * SUBSCRIBE  [0] 9 "SUBSCRIBE" topic: between two sides of 3.1; before that a message 01 topic
 * CANCEL     [0] 6 "CANCEL" topic; a message 00 topic
 * PING       [0] 4 "PING"  u16 BE time to live, 1/10 s  context, 0 to 16 bytes
 * PONG       [0] 4 "PONG"  that context
 * Source     ZeroMQ RFC 23 and 37.
 */
export const GREETING_BYTES = 64;

/** Flags of a frame. */
export const MORE = 1;
export const LONG = 2;
export const COMMAND = 4;

const MAJOR_AT = 10;
const MECHANISM_AT = 12;
const MECHANISM_BYTES = 20;
const MAJOR = 3;
const MINOR = 1;
const UNSUBSCRIBE = 0;
const SUBSCRIBE = 1;
/** Socket types of the other side. */
export const PUBLISHERS: readonly string[] = ['PUB', 'XPUB'];
export const SUBSCRIBERS: readonly string[] = ['SUB', 'XSUB'];
const MAX_CONTEXT_BYTES = 16;
const TTL_BYTES = 2;

export const GREETING: Buffer = greeting();
export const SUBSCRIBER_READY: Buffer = command('READY', property('Socket-Type', 'SUB'));
export const PUBLISHER_READY: Buffer = command('READY', property('Socket-Type', 'XPUB'));
/** Without a time to live: a publisher has its own ways to notice a dead link. */
export const PING: Buffer = command('PING', Buffer.alloc(TTL_BYTES));

/** The minor version of a peer that can be talked to; `partial` while that cannot be told. */
export function readGreeting(bytes: Buffer): number | 'partial' | 'breach' {
  const { length } = bytes;
  if (length > 0 && bytes[0] !== 0xff) return 'breach';
  if (length > 9 && bytes[9] !== 0x7f) return 'breach';
  if (length > MAJOR_AT && (bytes[MAJOR_AT] ?? 0) < MAJOR) return 'breach';
  if (length < GREETING_BYTES) return 'partial';
  const mechanism = bytes.toString('latin1', MECHANISM_AT, MECHANISM_AT + MECHANISM_BYTES);
  if (mechanism !== 'NULL'.padEnd(MECHANISM_BYTES, '\0')) return 'breach';
  return bytes[MAJOR_AT] === MAJOR ? (bytes[MAJOR_AT + 1] ?? 0) : MINOR;
}

/** Whether this command is the READY of a socket of one of these types. */
export function isReadyOf(body: Buffer, socketTypes: readonly string[]): boolean {
  const start = restOf(body, 'READY');
  if (start === null) return false;
  let socketType: string | null = null;
  for (let at: number = start; at < body.length; ) {
    const nameEnd: number = at + 1 + (body[at] ?? 0);
    if (nameEnd + 4 > body.length) return false;
    const valueEnd: number = nameEnd + 4 + body.readUInt32BE(nameEnd);
    if (valueEnd > body.length) return false;
    if (body.toString('latin1', at + 1, nameEnd).toLowerCase() === 'socket-type') {
      socketType = body.toString('latin1', nameEnd + 4, valueEnd);
    }
    at = valueEnd;
  }
  return socketType !== null && socketTypes.includes(socketType);
}

/** The subscription to all topics with this prefix, for a peer of this minor version. */
export function subscription(topic: Buffer, peerMinor: number): Buffer {
  if (peerMinor >= 1) return command('SUBSCRIBE', topic);
  return frame(0, Buffer.concat([Buffer.of(SUBSCRIBE), topic]));
}

/** What a subscriber wants from here on, or no longer: all topics with this prefix. */
export interface Interest {
  readonly isWanted: boolean;
  readonly prefix: Buffer;
}

/** Null to all commands that say nothing of it. */
export function interestOfCommand(body: Buffer): Interest | null {
  const wanted = restOf(body, 'SUBSCRIBE');
  const at = wanted ?? restOf(body, 'CANCEL');
  return at === null ? null : { isWanted: wanted !== null, prefix: body.subarray(at) };
}

/** The same of the only frame of a message. */
export function interestOfFrame(frame: Buffer): Interest | null {
  const [kind] = frame;
  if (kind !== SUBSCRIBE && kind !== UNSUBSCRIBE) return null;
  return { isWanted: kind === SUBSCRIBE, prefix: frame.subarray(1) };
}

/** The answer to this command, if it is a PING; null to all others. */
export function pongTo(body: Buffer): Buffer | null {
  const at = restOf(body, 'PING');
  if (at === null) return null;
  return command('PONG', body.subarray(at + TTL_BYTES, at + TTL_BYTES + MAX_CONTEXT_BYTES));
}

/** Where what follows the name begins; null where the command has another name. */
function restOf(body: Buffer, name: string): number | null {
  const end = 1 + name.length;
  if (body[0] !== name.length || body.toString('latin1', 1, end) !== name) return null;
  return end;
}

function greeting(): Buffer {
  const bytes = Buffer.alloc(GREETING_BYTES);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[MAJOR_AT] = MAJOR;
  bytes[MAJOR_AT + 1] = MINOR;
  bytes.write('NULL', MECHANISM_AT);
  return bytes;
}

function property(name: string, value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(value.length);
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name), length, Buffer.from(value)]);
}

function command(name: string, rest: Buffer): Buffer {
  return frame(COMMAND, Buffer.concat([Buffer.of(name.length), Buffer.from(name), rest]));
}

/** With these flags, in the shorter of its two forms. */
export function frame(flags: number, body: Buffer): Buffer {
  if (body.length < 256) return Buffer.concat([Buffer.of(flags, body.length), body]);
  const head = Buffer.alloc(9);
  head[0] = flags | LONG;
  head.writeUInt32BE(body.length, 5);
  return Buffer.concat([head, body]);
}
