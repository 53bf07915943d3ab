/**
 * ReplayProbe: one ask for everything an engine keeps, as a relay puts it when it starts.
 *
 * Bounds  one ask; the pause that ends an answer is that of the settings. Batches are counted and let go.
 */
import { Dealer } from 'zeromq';
import type { WorkerConfig } from '../../config/worker-config.ts';
import { MessageReader, socketOptions } from '../../connections/zmq.ts';
import { readReplayFrames, replayRequest } from '../../listener/replay-frames.ts';
import { type Check, fail, ok, skipped, warn } from './check.ts';
import { pause } from './context.ts';
import { messageOfReach, type Reach, reach } from './reach.ts';

interface Answer {
  readonly reach: Reach;
  batches: number;
  malformed: number;
  foreign: number;
  first: bigint | null;
  last: bigint | null;
  hasTopics: boolean;
  hasEnd: boolean;
  lastMessageMs: number | null;
}

const POLL_MS = 20;
/** Frames of a batch that names its topic: empty, topic, sequence, payload. */
const FRAMES_WITH_TOPIC = 4;

const ENABLE =
  "Give --replay-endpoint the engine's replay_endpoint, with buffer_steps above 0, or leave it out";

export async function probeReplay(
  endpoint: string,
  config: WorkerConfig,
  ended: AbortSignal,
): Promise<Check[]> {
  const answer: Answer = {
    reach: await reach(endpoint, ended),
    batches: 0,
    malformed: 0,
    foreign: 0,
    first: null,
    last: null,
    hasTopics: false,
    hasEnd: false,
    lastMessageMs: null,
  };
  if (answer.reach.kind === 'zmq') await ask(endpoint, config, answer, ended);
  return replayChecks(endpoint, answer);
}

async function ask(
  endpoint: string,
  config: WorkerConfig,
  answer: Answer,
  ended: AbortSignal,
): Promise<void> {
  const { engineTopic, engineMaxMessageBytes, replayIdleMs } = config;
  const socket = new Dealer({
    ...socketOptions(endpoint, 0),
    receiveHighWaterMark: 0,
    maxMessageSize: engineMaxMessageBytes,
  });
  const reader = new MessageReader(socket, (frames) => take(frames, engineTopic, answer));
  socket.connect(endpoint);
  socket.send(replayRequest(0n)).catch(() => undefined);
  while (!ended.aborted && !answer.hasEnd) {
    await pause(POLL_MS, ended);
    const { lastMessageMs } = answer;
    if (lastMessageMs !== null && performance.now() - lastMessageMs > replayIdleMs) break;
  }
  await reader.close(null);
}

function take(frames: readonly Buffer[], topic: string, answer: Answer): void {
  answer.lastMessageMs = performance.now();
  const message = readReplayFrames(frames, topic);
  if (frames.length === FRAMES_WITH_TOPIC) answer.hasTopics = true;
  if (message === 'end') answer.hasEnd = true;
  else if (message === 'foreign') answer.foreign++;
  else if (typeof message === 'string') answer.malformed++;
  else {
    answer.batches++;
    answer.first ??= message.sequence;
    answer.last = message.sequence;
  }
}

function replayChecks(endpoint: string, answer: Answer): Check[] {
  const [name, depth] = ['replay_answer', 'replay_depth'] as const;
  const { reach: found, batches, malformed, foreign, first, last, hasTopics, hasEnd } = answer;
  if (found.kind !== 'zmq') {
    const text = `${endpoint}: ${messageOfReach(found)}`;
    return [fail(name, text, ENABLE), skipped(depth, 'nobody answers')];
  }
  if (batches + malformed + foreign === 0 && !hasEnd) {
    const text = `the ZMQ socket at ${endpoint} did not answer a replay request`;
    const remedy = `It may be the event socket, or the engine is busy. ${ENABLE}`;
    return [fail(name, text, remedy), skipped(depth, 'nobody answers')];
  }
  const kept = `${batches} batches${first === null ? '' : ` (${first} to ${last})`}`;
  const depthCheck =
    batches > 0
      ? ok(depth, `the engine keeps ${kept}`)
      : warn(
          depth,
          foreign > 0
            ? 'the engine keeps batches of other topics only'
            : 'the engine keeps no batch',
          'An engine keeps what it has published: send it a request, and check its buffer_steps',
        );
  const form = hasTopics ? 'with topics' : 'without topics';
  if (malformed > 0) {
    const remedy = 'Check that the address is the replay socket of a vLLM or SGLang engine';
    return [fail(name, `${malformed} messages of the answer cannot be read`, remedy), depthCheck];
  }
  if (hasEnd) return [ok(name, `it answers, ${form}, and marks the end`), depthCheck];
  const remedy = 'Lower buffer_steps of the engine, or see whether it is overloaded';
  return [warn(name, `the answer broke off after ${kept}, without its end`, remedy), depthCheck];
}
