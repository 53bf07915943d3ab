/** What a router sends, byte for byte as a stock one of Dynamo 1.6.1 does. */
import { twoPart } from '../../src/protocol/two-part.ts';

export interface QueryFields {
  readonly worker_id: bigint;
  readonly dp_rank?: number;
  readonly start_event_id?: bigint | null;
  readonly end_event_id?: bigint | null;
  readonly supports_tree_dump_failed?: boolean;
  readonly kind?: unknown;
}

export interface ControlFields {
  readonly address: string;
  readonly subject?: string;
  readonly codec?: 'msgpack' | 'json' | 'absent' | 'cbor';
  readonly transport?: string;
  readonly streamType?: string;
}

const ID = 'f0bdad6c-588d-4c7b-a879-808383cc082c';

function controlMessage(control: ControlFields): Buffer {
  const { address, subject = 'a-subject', codec = 'msgpack', transport = 'tcp_server' } = control;
  const { streamType: stream_type = 'response' } = control;
  return Buffer.from(
    JSON.stringify({
      id: ID,
      request_type: 'single_in',
      response_type: 'many_out',
      ...(codec !== 'absent' && { payload_codec: codec }),
      connection_info: {
        transport,
        info: JSON.stringify({ address, subject, context: ID, stream_type }),
      },
    }),
  );
}

/** JSON with bigints as bare integers. */
function jsonWithBigints(value: unknown): string {
  const text = JSON.stringify(value, (_, field: unknown) =>
    typeof field === 'bigint' ? `u64:${field}` : field,
  );
  return text.replace(/"u64:(\d+)"/g, '$1');
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([0xa0 | value.length]), Buffer.from(value)]);
}

function integer(value: bigint): Buffer {
  if (value < 128n) return Buffer.from([Number(value)]);
  const bytes = Buffer.alloc(9, 0xcf);
  bytes.writeBigUInt64BE(value, 1);
  return bytes;
}

function msgpackValue(value: unknown): Buffer {
  if (value === null) return Buffer.from([0xc0]);
  if (typeof value === 'boolean') return Buffer.from([value ? 0xc3 : 0xc2]);
  if (typeof value === 'bigint') return integer(value);
  if (typeof value === 'number') return integer(BigInt(value));
  if (typeof value === 'string') return text(value);
  const entries = Object.entries(value as object);
  const fields = entries.flatMap(([key, field]) => [text(key), msgpackValue(field)]);
  return Buffer.concat([Buffer.from([0x80 | entries.length]), ...fields]);
}

export function queryBody(fields: QueryFields, codec: ControlFields['codec'] = 'msgpack'): Buffer {
  const body = {
    dp_rank: 0,
    start_event_id: null,
    end_event_id: null,
    supports_tree_dump_failed: true,
    kind: 'recovery',
    ...fields,
  };
  // In the order of a stock router.
  const { worker_id, ...others } = body;
  const ordered = { worker_id, ...others };
  return codec === 'msgpack' ? msgpackValue(ordered) : Buffer.from(jsonWithBigints(ordered));
}

export function requestPayload(control: ControlFields, fields: QueryFields): Buffer {
  return twoPart(controlMessage(control), queryBody(fields, control.codec));
}

export function requestFrame(path: string, payload: Uint8Array): Buffer {
  const headers = JSON.stringify({
    'x-endpoint-path': path,
    'request-id': ID,
    'x-frontend-send-ts-ns': '1796013380834868032',
  });
  return Buffer.concat([
    lengthPrefixed(2, path),
    lengthPrefixed(2, headers),
    lengthPrefixed(4, payload),
  ]);
}

function lengthPrefixed(byteCount: 2 | 4, content: string | Uint8Array): Buffer {
  const bytes = Buffer.from(content);
  const length = Buffer.alloc(byteCount);
  length.writeUIntBE(bytes.length, 0, byteCount);
  return Buffer.concat([length, bytes]);
}
