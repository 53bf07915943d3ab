/**
 * Prompts whose blocks are on the device, in a store, or in both: what a stock router scores for them is what a
 * plain model of engine and store says, round by round, a clear of the rank between two of them.
 */
import { expect, onTestFinished, vi } from 'vitest';
import { batch, batchFrames, removeEvent, storeEvent } from '../support/batches.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { fixedSeed } from '../support/properties.ts';
import { seededRandom } from '../support/router-streams.ts';
import type { OverlapScores } from './dynamo-peers.ts';
import { makePlace } from './places.ts';
import { expectSame, RelayHere, startPeer, until } from './router-trial.ts';

export const BLOCK_TOKENS = 4;
const ROUNDS = 3;
const CLEARED_ROUND = 1;
const LOOK = { timeout: 20_000, interval: 200 };

/** Pieces are told by all tokens from the prompt's start to their end. */
type Tokens = readonly number[];

export interface TriedStore {
  /** Of the relay, so that it follows the store. */
  readonly flags: readonly string[];
  hold(pieces: readonly Tokens[]): Promise<void>;
  drop(piece: Tokens): Promise<void>;
}

export interface ScoreTrialOptions {
  readonly store: TriedStore;
  /** What the store holds is so many tokens each. */
  readonly pieceTokens: number;
  /** Most that a prompt adds to the one it begins like. */
  readonly maxPieces: number;
  readonly promptsARound: number;
  /** Only of blocks that the engine has shown it is known where they stand. */
  readonly needsShown: boolean;
  /** As the engine calls the block that ends these tokens. */
  readonly nameOf: (tokens: Tokens) => bigint;
  /** Blocks that the router found in the store. */
  readonly inStore: (row: OverlapScores['workers'][number]) => number;
}

interface Score {
  readonly device: number;
  readonly store: number;
}

/** How often prompts were found in the store: at once, and behind blocks on the device. */
export interface Seen {
  alone: number;
  behind: number;
}

class Model {
  readonly prompts: number[][] = [];
  readonly device = new Set<string>();
  readonly shown = new Set<string>();
  readonly store = new Set<string>();
  readonly #options: ScoreTrialOptions;
  readonly #random = seededRandom(fixedSeed.seed);

  constructor(options: ScoreTrialOptions) {
    this.#options = options;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Often the start of one that is there, with another end. */
  newPrompt(): number[] {
    const { pieceTokens, maxPieces } = this.#options;
    const other = this.anyPrompt();
    const kept = this.below(other.length / pieceTokens + 1) * pieceTokens;
    const more = (1 + this.below(maxPieces)) * pieceTokens;
    const prompt = [
      ...other.slice(0, kept),
      ...Array.from({ length: more }, () => this.below(1e5)),
    ];
    this.prompts.push(prompt);
    return prompt;
  }

  anyPrompt(): number[] {
    return this.prompts[this.below(this.prompts.length)] ?? [];
  }

  isShared(block: Tokens): boolean {
    const own = block.join();
    return this.prompts.filter((one) => one.slice(0, block.length).join() === own).length > 1;
  }

  score(tokens: Tokens): Score {
    const blocks = prefixesOf(tokens, BLOCK_TOKENS).map((block) => block.join());
    const left = blocks.findIndex((block) => !this.device.has(block));
    const device = left === -1 ? blocks.length : left;
    let all = device;
    while (all < blocks.length && this.#isPlaced(tokens, all)) all++;
    return { device, store: all - device };
  }

  #isPlaced(tokens: Tokens, block: number): boolean {
    const { pieceTokens, needsShown } = this.#options;
    const end = (block + 1) * BLOCK_TOKENS;
    const pieceEnd = Math.ceil(end / pieceTokens) * pieceTokens;
    if (!this.store.has(tokens.slice(0, pieceEnd).join())) return false;
    return !needsShown || this.shown.has(tokens.slice(0, end).join());
  }
}

export async function tryScores(options: ScoreTrialOptions): Promise<Seen> {
  const { store, pieceTokens, promptsARound, nameOf, inStore } = options;
  const place = await makePlace({ eventPlane: 'zmq', blockSize: BLOCK_TOKENS });
  await startPeer('dynamo_worker', place.shared);
  const engine = await EngineStub.start();
  onTestFinished(() => engine.close());
  const relay = await RelayHere.startIn(place, engine.endpoint, store.flags);
  await engine.subscribed();
  const router = await startPeer('dynamo_router', place.shared);
  const model = new Model(options);
  let sequence = 0;
  const send = (event: unknown): Promise<void> =>
    engine.send(batchFrames(batch([event]), sequence++));

  const toDevice = async (tokens: Tokens): Promise<void> => {
    const blocks = prefixesOf(tokens, BLOCK_TOKENS);
    for (const block of blocks) {
      model.device.add(block.join());
      model.shown.add(block.join());
    }
    await send(storeEvent(blocks.map(nameOf), null, { token_ids: tokens }));
  };
  const toStore = async (tokens: Tokens): Promise<void> => {
    const pieces = prefixesOf(tokens, pieceTokens).filter((one) => !model.store.has(one.join()));
    for (const piece of pieces) model.store.add(piece.join());
    if (pieces.length > 0) await store.hold(pieces);
  };
  /** The last blocks go, nobody else having them: the device tier of a router is a tree. */
  const offDevice = async (tokens: Tokens): Promise<void> => {
    const own = prefixesOf(tokens, BLOCK_TOKENS)
      .reverse()
      .filter((block) => model.device.has(block.join()) && !model.isShared(block));
    const gone = own.slice(0, model.below(own.length + 1));
    for (const block of gone) model.device.delete(block.join());
    if (gone.length > 0) await send(removeEvent(gone.map(nameOf)));
  };
  const offStore = async (tokens: Tokens): Promise<void> => {
    const held = prefixesOf(tokens, pieceTokens).filter((one) => model.store.has(one.join()));
    const piece = held[model.below(held.length)];
    if (piece === undefined) return;
    model.store.delete(piece.join());
    await store.drop(piece);
  };
  const scoreOf = ({ workers: [row] }: OverlapScores): Score => {
    return { device: row?.device_blocks ?? 0, store: row === undefined ? 0 : inStore(row) };
  };

  const seen = { alone: 0, behind: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 0; count < promptsARound; count++) {
      const prompt = model.newPrompt();
      // The store may be told of before the engine, and of some the engine never tells.
      const steps = [toStore, toDevice].slice(0, 1 + model.below(2));
      for (const step of model.below(2) === 0 ? steps : steps.reverse()) await step(prompt);
      if (count % 2 === 0) await offStore(model.anyPrompt());
      await offDevice(model.anyPrompt());
    }
    if (round === CLEARED_ROUND) {
      // All tiers are forgotten, and what the store holds comes again.
      model.device.clear();
      await send({ type: 'AllBlocksCleared' });
    }
    await relay.passed(sequence - 1);
    await until(() => relay.worker.status().sources[0]?.objects === model.store.size);
    await expectSame(router, relay);
    const prompts = model.prompts.map((tokens) => ({ tokens }));
    const expected = model.prompts.map((tokens) => model.score(tokens));
    const look = async (): Promise<void> =>
      expect((await router.askScores(prompts)).map(scoreOf)).toEqual(expected);
    await vi.waitFor(look, LOOK);
    for (const score of expected) {
      if (score.store > 0) seen[score.device > 0 ? 'behind' : 'alone']++;
    }
  }
  return seen;
}

function prefixesOf(tokens: Tokens, stepTokens: number): number[][] {
  const count = tokens.length / stepTokens;
  return Array.from({ length: count }, (_, at) => tokens.slice(0, (at + 1) * stepTokens));
}
