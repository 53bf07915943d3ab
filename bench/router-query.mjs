/**
 * A router that takes a dump: asks over TCP as a stock one of Dynamo 1.6.1 does, is called back, counts the answer's bytes.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { Packr } from 'msgpackr';
import { twoPart } from '../dist/protocol/two-part.js';

const HEAD_BYTES = 24;
const REQUEST_ID = '1b671a64-40d5-491e-99b0-da01ff1f3341';
const packr = new Packr({ useRecords: false });

/** `{bytes, ms}` of an answer with everything that a rank holds; `status` is its relay's. */
export async function takeDump({ ranks: [rank], recovery, settings }) {
  const startMs = performance.now();
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answered = readAnswer(server);
  const asking = connect(Number(recovery.endpoint.split(':').at(-1)), '127.0.0.1');
  await once(asking, 'connect');
  const source = `worker_kv_query_source_${BigInt(rank.publisher_id).toString(16)}`;
  const worker = BigInt(rank.worker_id);
  const path = `${worker.toString(16)}/${settings.namespace}/${settings.component}/${source}`;
  asking.write(requestFrame(path, worker, `127.0.0.1:${server.address().port}`));
  const bytes = await answered;
  asking.destroy();
  server.close();
  return { bytes, ms: performance.now() - startMs };
}

function requestFrame(path, worker, address) {
  const info = { address, subject: 'dump', context: REQUEST_ID, stream_type: 'response' };
  const control = {
    id: REQUEST_ID,
    request_type: 'single_in',
    response_type: 'many_out',
    payload_codec: 'msgpack',
    connection_info: { transport: 'tcp_server', info: JSON.stringify(info) },
  };
  const query = {
    worker_id: worker,
    dp_rank: 0,
    start_event_id: null,
    end_event_id: null,
    supports_tree_dump_failed: true,
    kind: 'recovery',
  };
  const headers = { 'x-endpoint-path': path, 'request-id': REQUEST_ID };
  const payload = twoPart(Buffer.from(JSON.stringify(control)), packr.pack(query));
  return Buffer.concat([
    withLength(2, Buffer.from(path)),
    withLength(2, Buffer.from(JSON.stringify(headers))),
    withLength(4, payload),
  ]);
}

function withLength(lengthBytes, content) {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(content.length, 0, lengthBytes);
  return Buffer.concat([length, content]);
}

/** Bytes of the first message with a body, once all of it has come; the rest of the stream is not waited for. */
async function readAnswer(server) {
  const [socket] = await once(server, 'connection');
  let head = Buffer.alloc(0);
  let bodyLeft = 0;
  let bodyBytes = 0;
  for await (const chunk of socket) {
    if (bodyLeft > 0) {
      bodyLeft -= chunk.length;
    } else {
      head = Buffer.concat([head, chunk]);
      while (bodyBytes === 0 && head.length >= HEAD_BYTES) {
        const headerBytes = Number(head.readBigUInt64BE(0));
        const length = Number(head.readBigUInt64BE(8));
        if (head.length < HEAD_BYTES + headerBytes) break;
        head = head.subarray(HEAD_BYTES + headerBytes);
        if (length === 0) continue;
        bodyBytes = length;
        bodyLeft = length - head.length;
      }
    }
    if (bodyBytes > 0 && bodyLeft <= 0) return bodyBytes;
  }
  throw new Error('the relay closed the stream before the answer had ended');
}
