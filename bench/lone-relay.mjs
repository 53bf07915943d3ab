/** The whole relay of a rank, planes and sockets apart: frames in, messages that go nowhere. The built package. */
import { randomBytes } from 'node:crypto';
import { arena, BatchReader, loadConfig, readFrames } from '../dist/index.js';
import { Relay } from '../dist/relay.js';

const ARGV = ['--engine-endpoint', 'tcp://127.0.0.1:5557', '--block-size', '16'];
const NOWHERE = ['--event-plane', 'none', '--worker-id', '1'];

/** As a worker has it by default, blocks of 16 tokens. */
export function loneConfig() {
  const sources = { env: {}, readFile: () => '', random: randomBytes };
  return loadConfig({ argv: [...ARGV, ...NOWHERE], ...sources });
}

export function createLoneRelay(config) {
  const ignore = () => undefined;
  const warner = { warn: ignore };
  const callbacks = { onPlaneChange: ignore, onResync: ignore };
  const relay = new Relay({ config, warner, dpRank: 0, nats: null, ...callbacks });
  const reader = new BatchReader(config);
  return {
    push(frames) {
      arena.reset();
      relay.push(reader.read(readFrames(frames, 'safe').payload, performance.now()));
    },
    stop: () => relay.stop(0),
  };
}
