/** Eight ranks of one worker, each followed by the same stock router: what one of them loses, it alone repairs. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { batch, batchFrames, storeEvent, tokensFrom } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { freePorts } from '../support/free-ports.ts';
import { eventsOf } from '../support/published-events.ts';
import { ReplayStub } from '../support/replay-stub.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { hasDynamo } from './dynamo-peers.ts';
import { startLossyTrial } from './lossy-plane.ts';
import { answersOf, expectSame, type RelayHere, until } from './router-trial.ts';

const RANKS = Array.from({ length: 8 }, (_, rank) => rank);
const CHAIN_BLOCKS = 4;
/** The rank that loses. */
const LOSER = 5;

/** One engine: eight event sockets and eight replay sockets, each rank's port after the one before. */
class Engines {
  readonly endpoint: string;
  readonly replayEndpoint: string;
  readonly #sockets: readonly EngineStub[];
  readonly #replays: readonly ReplayStub[];
  readonly #sequences = RANKS.map(() => 0);

  private constructor(
    [port, replayPort]: readonly [number, number],
    sockets: readonly EngineStub[],
    replays: readonly ReplayStub[],
  ) {
    this.endpoint = `tcp://127.0.0.1:${port}`;
    this.replayEndpoint = `tcp://127.0.0.1:${replayPort}`;
    this.#sockets = sockets;
    this.#replays = replays;
  }

  static async start(): Promise<Engines> {
    const port = await freePorts(2 * RANKS.length);
    const replayPort = port + RANKS.length;
    const at = (first: number, rank: number): string => `tcp://127.0.0.1:${first + rank}`;
    const sockets = await Promise.all(RANKS.map((rank) => EngineStub.start(at(port, rank))));
    onTestFinished(() => {
      for (const socket of sockets) socket.close();
    });
    const replays = await Promise.all(RANKS.map((rank) => ReplayStub.start(at(replayPort, rank))));
    return new Engines([port, replayPort], sockets, replays);
  }

  async subscribed(): Promise<void> {
    for (const socket of this.#sockets) await socket.subscribed();
  }

  /** A chain that is new to the rank; equal prompts have equal blocks in all ranks. */
  async store(rank: number, fate: 'sent' | 'replayed' | 'lost' = 'sent'): Promise<void> {
    const sequence = this.#sequences[rank] ?? 0;
    this.#sequences[rank] = sequence + 1;
    const first = sequence * CHAIN_BLOCKS;
    const tokens = { token_ids: tokensFrom(first * 4, CHAIN_BLOCKS * 4) };
    const event = storeEvent(tokensFrom(first + 1, CHAIN_BLOCKS), null, tokens);
    const frames = batchFrames(batch([event], rank), sequence);
    if (fate !== 'lost') this.#replays[rank]?.keep(frames);
    if (fate === 'sent') await this.#sockets[rank]?.send(frames);
  }

  async storeAll(): Promise<void> {
    for (const rank of RANKS) await this.store(rank);
  }
}

function blocksOf(relay: RelayHere): number[] {
  return relay.worker.status().ranks.map(({ blocks }) => blocks.device);
}

/** The loser has as many blocks, and every other rank as many as they. */
function hasBlocks(relay: RelayHere, loser: number, others: number): boolean {
  const wanted = onlyLoser(loser, others);
  return blocksOf(relay).every((count, rank) => count === wanted[rank]);
}

function onlyLoser(loser: number, others: number): number[] {
  return RANKS.map((rank) => (rank === LOSER ? loser : others));
}

describe.skipIf(!hasDynamo())('eight ranks', () => {
  test('a gap on one is repaired there, and no other rank notices', async () => {
    let losesNext = false;
    const drops = (envelope: Uint8Array): boolean => {
      const [event] = eventsOf(decodeEnvelope(envelope).payload);
      if (!losesNext || event?.rank !== LOSER) return false;
      losesNext = false;
      return true;
    };
    const engines = await Engines.start();
    const { endpoint, replayEndpoint } = engines;
    const engine = { endpoint, blockSize: 4, dpSize: RANKS.length };
    const flags = [`--replay-endpoint=${replayEndpoint}`, '--on-engine-gap=clear'];
    const { relay, startRouter } = await startLossyTrial('broker', drops, engine, flags);
    await engines.subscribed();
    await relay.ready();
    const publishers = (): string[] =>
      relay.worker.status().ranks.map(({ publisher_id: id }) => id);
    const before = publishers();
    const counted = (name: 'missing_batches' | 'lost_batches'): number[] =>
      relay.worker.status().ranks.map(({ counters }) => counters[name]);
    const answers = (kind: 'events' | 'tree_dump'): Promise<number[]> =>
      Promise.all(RANKS.map((rank) => answersOf(relay, kind, rank)));
    const router = await startRouter();
    await until(async () => (await answers('tree_dump')).every((count) => count === 1));
    for (let chain = 0; chain < 5; chain++) await engines.storeAll();
    await until(() => blocksOf(relay).every((count) => count === 20));
    expect(await expectSame(router, relay)).toHaveLength(8 * 20);

    // A batch of the engine's that its replay still has.
    await engines.store(LOSER, 'replayed');
    await engines.storeAll();
    await until(() => hasBlocks(relay, 28, 24));
    await expectSame(router, relay);
    expect(counted('missing_batches')).toEqual(onlyLoser(1, 0));
    expect(counted('lost_batches')).toEqual(onlyLoser(0, 0));
    expect(await answers('events')).toEqual(onlyLoser(0, 0));

    // A message of ours.
    losesNext = true;
    await engines.storeAll();
    await until(() => !losesNext);
    await engines.storeAll();
    await until(() => hasBlocks(relay, 36, 32));
    expect(await expectSame(router, relay)).toHaveLength(36 + 7 * 32);
    expect(await answers('events')).toEqual(onlyLoser(1, 0));

    // A batch that nobody has any more: the rank is cleared.
    await engines.store(LOSER, 'lost');
    await engines.storeAll();
    await until(() => hasBlocks(relay, 4, 36));
    expect(await expectSame(router, relay)).toHaveLength(4 + 7 * 36);
    expect(counted('lost_batches')).toEqual(onlyLoser(1, 0));
    expect(await answers('tree_dump')).toEqual(onlyLoser(1, 1));
    expect(publishers()).toEqual(before);
    const isSound = relay.worker
      .status()
      .ranks.map(({ degraded }) => degraded.every(({ code }) => code === 'advertises_loopback'));
    expect(isSound).toEqual(RANKS.map(() => true));
  });
});
