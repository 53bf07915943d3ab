/**
 * WarmUp: a made-up stream through a relay of its own while the process waits for its engine, so that the first
 * events meet compiled code: interpreted, a batch takes ten times as long (`node bench/warm-up.mjs`).
 *
 * Slices   of SLICE_MS, each in a turn of its own: timers and sockets do not notice.
 * Ends     early where it is no longer wanted, which is when events have come.
 * Never    touches what the worker counts, holds or publishes.
 */
import { randomBytes } from 'node:crypto';
import { pack } from 'msgpackr';
import type { WorkerConfig } from './config/worker-config.ts';
import { BatchReader } from './engines/batch-reader.ts';
import { arena } from './kernel/arena.ts';
import { Relay } from './relay.ts';

const SLICE_MS = 4;
/** Enough for the compiler to be done. */
const BATCHES = 3000;
const FEW_BATCHES = 8;

const BLOCK_SIZE = 16;
const STORES = 16;
/** Payloads that are played over and over: what one stores, the one half a round behind it removes. */
const ROUND = 64;
const PROMPT_EVERY = 8;
const PROMPT_BLOCKS = 32;
const CONTINUES_EVERY = 4;

/** Resolves with the batches that were played. */
export async function warmUp(config: WorkerConfig, isWanted: () => boolean): Promise<number> {
  const payloads = createRound(config.dpRank);
  // Two, or the compiler would take the closures of the first for the only ones there will ever be.
  const rehearsals = [new Rehearsal(config, payloads), new Rehearsal(config, payloads)];
  const played = (): number => rehearsals.reduce((sum, one) => sum + one.played, 0);
  for (let turn = 0; played() < BATCHES && isWanted(); turn++) {
    // Every other turn brings so little that no message is shared.
    const most = turn % 2 === 0 ? BATCHES - played() : FEW_BATCHES;
    rehearsals[(turn >> 1) % rehearsals.length]?.play(most, performance.now() + SLICE_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(rehearsals.map((one) => one.stop()));
  return played();
}

class Rehearsal {
  played = 0;
  readonly #payloads: readonly Uint8Array[];
  readonly #reader: BatchReader;
  readonly #relay: Relay;

  constructor(config: WorkerConfig, payloads: readonly Uint8Array[]) {
    this.#payloads = payloads;
    this.#reader = new BatchReader(config);
    this.#relay = new Relay({
      config: { ...config, eventPlane: 'none', workerId: 1n, blockSize: BLOCK_SIZE },
      dpRank: config.dpRank,
      warner: { warn: () => undefined },
      onPlaneChange: () => undefined,
      nats: null,
      onResync: () => undefined,
    });
  }

  play(mostBatches: number, untilMs: number): void {
    for (let left = mostBatches; left > 0 && performance.now() < untilMs; left--) {
      arena.reset();
      const payload = this.#payloads[this.played++ % ROUND] as Uint8Array;
      const batch = this.#reader.read(payload, performance.now());
      if (typeof batch !== 'string') this.#relay.push(batch);
    }
  }

  async stop(): Promise<void> {
    await this.#relay.stop(0);
    this.#reader.free();
  }
}

/** Payloads as vLLM and SGLang send them: single blocks that continue chains, some prompts, evictions. */
function createRound(dpRank: number): Uint8Array[] {
  const stored = Array.from({ length: ROUND }, (_, at) =>
    Array.from({ length: isPrompt(at) ? PROMPT_BLOCKS : STORES }, randomHash),
  );
  return stored.map((hashes, at) => {
    const evicted = stored[(at + ROUND / 2) % ROUND] as bigint[];
    const parents = stored[(at + ROUND - 1) % ROUND] as bigint[];
    const removes = evicted.map((hash) => ['BlockRemoved', [hash], 'GPU', 0]);
    const stores = isPrompt(at)
      ? [storeOf(hashes, null)]
      : hashes.map((hash, at) => {
          // Most continue the batch before, some the event before.
          const parent = at % CONTINUES_EVERY === 1 ? hashes[at - 1] : parents[at];
          return storeOf([hash], parent ?? null);
        });
    return pack([0.5, [...removes, ...stores], dpRank]);
  });
}

function isPrompt(at: number): boolean {
  return at % PROMPT_EVERY === 0;
}

function storeOf(hashes: readonly bigint[], parent: bigint | null): unknown[] {
  // Token ids of one to five bytes on the wire.
  const tokens = Array.from(randomBytes(hashes.length * BLOCK_SIZE), (byte) => byte * 600);
  const tail = [null, 'GPU', null, null, 0, 'full_attention', null];
  return ['BlockStored', hashes, parent, tokens, BLOCK_SIZE, ...tail];
}

function randomHash(): bigint {
  return randomBytes(8).readBigUInt64BE();
}
