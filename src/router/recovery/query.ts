/**
 * A router's query: what it asks, and where and how it wants the answer.
 *
 * Payload  two-part message: control message (JSON) and body, in the codec that the control names.
 * Body     worker_id u64, dp_rank u32, start_event_id u64|nil, end_event_id u64|nil,
 *          supports_tree_dump_failed bool (false), kind (recovery), the latter two optional.
 * Refused  at once, by a text in the acknowledgement: the router then tries again without waiting for
 *          an answer that cannot come.
 * Source   ai-dynamo/dynamo 1.6.1, worker query of the KV router.
 */
import { isIP } from 'node:net';
import { splitTwoPart } from '../../protocol/two-part.ts';
import { MsgpackToJson } from './msgpack-to-json.ts';

export type Codec = 'msgpack' | 'json';

export interface Query {
  readonly workerId: bigint;
  readonly dpRank: number;
  readonly startEventId: bigint | null;
  readonly endEventId: bigint | null;
  readonly supportsTreeDumpFailed: boolean;
  /** Other kinds belong to another sort of source. */
  readonly kind: 'recovery' | 'status' | 'state_agent_recovery';
}

export interface CallBack {
  /** An address, never a name. */
  readonly host: string;
  readonly port: number;
  /** Tells the router which of its queries is answered. */
  readonly subject: string;
}

export interface RouterRequest {
  readonly codec: Codec;
  readonly callBack: CallBack;
  readonly query: Query;
}

/** A request that will get no answer, with what the router is told. */
export class RequestError extends Error {
  readonly reason: 'malformed_request' | 'unsupported_transport';

  constructor(reason: RequestError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

const MAX_SUBJECT_CHARACTERS = 256;

type Fields = Readonly<Record<string, unknown>>;

/** Throws RequestError, nothing else. */
export function readRequest(payload: Buffer): RouterRequest {
  const parts = splitTwoPart(payload);
  if (parts === null) throw malformed('no two-part message');
  const control = fieldsOf(parts.header.toString('utf8'), 'the control message');
  const { payload_codec: codec = 'json' } = control;
  if (codec !== 'json' && codec !== 'msgpack') throw malformed('its codec is unknown');
  const callBack = readCallBack(control.connection_info);
  const text = codec === 'json' ? parts.body.toString('utf8') : jsonOf(parts.body);
  return { codec, callBack, query: readQuery(fieldsOf(text, 'the body')) };
}

function readCallBack(connection: unknown): CallBack {
  const { transport, info } = isFields(connection) ? connection : malformedFields();
  if (transport === 'quic-response') {
    throw new RequestError('unsupported_transport', 'the response plane has to be tcp');
  }
  if (transport !== 'tcp_server' || typeof info !== 'string') {
    throw new RequestError('unsupported_transport', 'the answer can go over TCP alone');
  }
  const { address, subject, stream_type: streamType } = fieldsOf(info, 'the connection');
  if (streamType !== 'response') throw malformed('it asks for no response stream');
  if (typeof subject !== 'string' || subject.length > MAX_SUBJECT_CHARACTERS) {
    throw malformed('its subject is no short text');
  }
  const { host, port } = literalAddress(address);
  return { host, port, subject };
}

/** `192.0.2.2:39011` or `[2001:db8::1]:39011`; a name is none, since looking it up takes its time. */
function literalAddress(address: unknown): { host: string; port: number } {
  const match =
    typeof address === 'string' ? /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(address) : null;
  const [, ipv6, ipv4, digits] = match ?? [];
  const host = ipv6 ?? ipv4 ?? '';
  const port = Number(digits);
  if (isIP(host) !== (ipv6 === undefined ? 4 : 6) || port < 1 || port > 65535) {
    throw malformed('its address is no IP address with a port');
  }
  return { host, port };
}

function readQuery(body: Fields): Query {
  const { supports_tree_dump_failed: supports = false, kind = 'recovery' } = body;
  if (typeof supports !== 'boolean') throw malformed('supports_tree_dump_failed is no truth value');
  const dpRank = readU64(body.dp_rank, 'dp_rank');
  if (dpRank > 0xffff_ffffn) throw malformed('dp_rank is no u32');
  return {
    workerId: readU64(body.worker_id, 'worker_id'),
    dpRank: Number(dpRank),
    startEventId: readEventId(body.start_event_id, 'start_event_id'),
    endEventId: readEventId(body.end_event_id, 'end_event_id'),
    supportsTreeDumpFailed: supports,
    kind: readKind(kind),
  };
}

function readKind(kind: unknown): Query['kind'] {
  if (kind === 'recovery') return kind;
  if (isFields(kind)) {
    if ('status' in kind) return 'status';
    if ('state_agent_recovery' in kind) return 'state_agent_recovery';
  }
  throw malformed('its kind is unknown');
}

function readEventId(value: unknown, name: string): bigint | null {
  return value === null || value === undefined ? null : readU64(value, name);
}

/** A number, or the digits that `exactIntegers` has put in its place. */
function readU64(value: unknown, name: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value);
  if (typeof value === 'string' && /^\d{16,20}$/.test(value)) {
    const integer = BigInt(value);
    if (integer < 1n << 64n) return integer;
  }
  throw malformed(`${name} is no u64`);
}

function fieldsOf(text: string, what: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(exactIntegers(text));
  } catch {
    throw malformed(`${what} is no JSON`);
  }
  return isFields(value) ? value : malformedFields();
}

/**
 * A string, closed or not, so that each is looked at once however its quotes are escaped; or an integer
 * of so many digits that JSON.parse could round it.
 */
const STRING_OR_LONG_INTEGER = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|(?<![\d.+\-eE])\d{16,}(?![\d.eE])/g;

/** Long integers become strings. */
function exactIntegers(json: string): string {
  return json.replace(STRING_OR_LONG_INTEGER, (token) =>
    token.startsWith('"') ? token : `"${token}"`,
  );
}

function jsonOf(body: Buffer): string {
  const values = new MsgpackToJson(body);
  try {
    const text = values.next();
    if (values.values === 1) return text;
  } catch {
    // Told as malformed, like everything that is no single value.
  }
  throw malformed('the body is no MessagePack');
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformedFields(): never {
  throw malformed('it is no map');
}

function malformed(why: string): RequestError {
  return new RequestError('malformed_request', `the request cannot be read: ${why}`);
}
