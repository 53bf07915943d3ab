/**
 * Records an engine's event socket into a file that `kvrelay demo` plays.
 *
 *   node scripts/record-demo.mjs ENDPOINT OUT [--batches N] [--engine NAME] [--block-size TOKENS]
 *
 * Ends     after N batches, after 5 s without one, or at Ctrl-C; what has come until then is kept.
 * Start    says on stderr when it is subscribed: what the engine publishes before is missed.
 * Contents token ids as they are: record nothing that must not leave its machine.
 *
 * `assets/demo.kvrec` is 4,500 batches at 40 a second from vLLM 0.33.0's own KVCacheManager and
 * ZmqEventPublisher, run from the released wheel without a GPU: 300 blocks of 16 tokens, two
 * requests a batch that start with one of six prefixes, two LoRA adapters, one cache salt, random
 * tokens.
 */
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ensureBuilt, ensureInstalled, fail, say } from './setup.mjs';

const QUIET_END_MS = 5000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    batches: { type: 'string', default: '0' },
    engine: { type: 'string', default: 'vllm 0.33.0' },
    'block-size': { type: 'string', default: '16' },
    description: {
      type: 'string',
      default:
        'vLLM KVCacheManager and ZmqEventPublisher, 300 blocks, shared prefixes, two LoRA adapters',
    },
  },
});
const [endpoint, out] = positionals;
const maxBatches = Number(values.batches) || Number.POSITIVE_INFINITY;
if (endpoint === undefined || out === undefined) {
  fail('usage: node scripts/record-demo.mjs ENDPOINT OUT [--batches N]');
}
ensureInstalled();
ensureBuilt();
const { Subscriber } = await import('zeromq');
const { RecordingWriter } = await import('../dist/cli/recording.js');

const socket = new Subscriber({ linger: 0, receiveHighWaterMark: 0 });
socket.events.on('handshake', () => {
  // The subscription follows the handshake; a moment later the engine has it.
  setTimeout(() => say(`subscribed to ${endpoint}`), 500);
});
socket.subscribe();
socket.connect(endpoint);
process.once('SIGINT', () => socket.close());

const file = openSync(out, 'w', 0o600);
const writer = new RecordingWriter(
  {
    format: 'kvrelay-recording',
    version: 1,
    engine: values.engine,
    block_size: Number(values['block-size']),
    recorded_at: new Date().toISOString(),
    description: values.description,
  },
  (bytes) => writeFileSync(file, bytes),
);

let batches = 0;
let startMs = 0;
while (batches < maxBatches) {
  let frames;
  try {
    frames = await socket.receive();
  } catch (error) {
    // The engine has been quiet, or Ctrl-C has closed the socket.
    if (error.code === 'EAGAIN' || socket.closed) break;
    throw error;
  }
  const nowMs = performance.now();
  if (batches === 0) startMs = nowMs;
  writer.add({ atMs: Math.round(nowMs - startMs), frames });
  batches++;
  socket.receiveTimeout = QUIET_END_MS;
}
writer.flush();
closeSync(file);
say(`recorded ${batches} batches to ${out}`);
process.exit(0);
