/**
 * World: engines, networks, one relay process and a subscriber, on one clock.
 *
 * Real     the relay process from the engine's stream to the plane: EngineSource with its reader, EngineStream
 *          with its sequencer, Relay with its pipeline, NatsPlane with its outbox.
 * Played   what the process has sockets for, and the other parties.
 */
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import type { NatsConnection } from '../../src/connections/nats.ts';
import { EngineSource } from '../../src/engine-source.ts';
import { Relay } from '../../src/relay.ts';
import { degradedCodes } from '../../src/relay-degraded.ts';
import { dumpOf } from '../support/held-blocks.ts';
import type { PublishedEvent } from '../support/published-events.ts';
import { configOf } from '../support/worker-config.ts';
import { blockKey } from './block-counts.ts';
import { EngineLink } from './engine-link.ts';
import { PublishedBlocks } from './published-blocks.ts';
import type { Random } from './random.ts';
import { ReplayPath } from './replay-path.ts';
import type { Setup } from './setup.ts';
import { SimulatedEngine } from './simulated-engine.ts';
import type { SimulatedListener } from './simulated-listener.ts';
import { SimulatedNats } from './simulated-nats.ts';
import { Subscriber } from './subscriber.ts';
import type { VirtualClock } from './virtual-clock.ts';
import { Witness } from './witness.ts';

/** One engine socket and what belongs to it. */
export interface Party {
  readonly engine: SimulatedEngine;
  readonly link: EngineLink;
  readonly ranks: readonly number[];
  /** Of the relay that runs now; null without one. */
  listener: SimulatedListener | null;
  path: ReplayPath | null;
  replaysBlockedUntilMs: number;
}

const BLOCK_SIZE = 4;
const MAX_PAYLOAD_BYTES = 1 << 20;
const DUMP_MS = 20;

const silent = { warn: () => undefined, info: () => undefined };

export class World {
  readonly setup: Setup;
  readonly clock: VirtualClock;
  readonly parties: readonly Party[];
  readonly subscriber: Subscriber;
  readonly log: (text: string) => void;
  /** By rank; empty while no relay process runs. */
  relays: readonly Relay[] = [];
  nats: SimulatedNats | null = null;
  /** When the last fault was inflicted or ended. */
  faultMs = 0;
  readonly #config: WorkerConfig;
  readonly #random: Random;
  #relayStarts = 0;
  /** Of the present relay of each rank. */
  readonly #published = new Map<number, PublishedBlocks>();

  constructor(setup: Setup, clock: VirtualClock, random: Random, log: (text: string) => void) {
    this.setup = setup;
    this.clock = clock;
    this.log = log;
    this.#random = random;
    this.#config = configFor(setup);
    this.subscriber = new Subscriber((rank) => this.#query(rank));
    const ranks = Array.from({ length: setup.ranks }, (_, rank) => rank);
    const groups = setup.isShared ? [ranks] : ranks.map((rank) => [rank]);
    this.parties = groups.map((group) => this.#createParty(group));
  }

  start(): void {
    for (const { engine } of this.parties) engine.start(this.setup.headStart);
    this.startRelay();
  }

  startRelay(): void {
    if (this.relays.length > 0) return;
    const { clock, subscriber } = this;
    const random = this.#random.fork(`relay ${this.#relayStarts++}`);
    const nats = new SimulatedNats(clock, random.fork('nats'), MAX_PAYLOAD_BYTES, (envelope) =>
      subscriber.take(envelope),
    );
    this.nats = nats;
    this.relays = Array.from({ length: this.setup.ranks }, (_, dpRank) => {
      const relay = new Relay({
        config: this.#config,
        dpRank,
        warner: silent,
        onPlaneChange: () => undefined,
        onResync: () => undefined,
        nats: nats as unknown as NatsConnection,
      });
      subscriber.announce(dpRank, relay.publisherId);
      if (relay.indexer !== null) this.#published.set(dpRank, new PublishedBlocks(relay.indexer));
      return relay;
    });
    for (const party of this.parties) this.#connect(party, random);
    nats.start();
  }

  /** The process is killed: nothing is flushed, and what was under way is lost. */
  killRelay(): void {
    for (const party of this.parties) {
      party.listener?.kill();
      party.link.detach();
      party.engine.witness.forgetRelay();
      party.listener = null;
      party.path = null;
    }
    this.nats?.kill();
    this.nats = null;
    // Gives the kernel its memory back; no message can leave any more.
    for (const relay of this.relays) void relay.stop(0);
    this.relays = [];
  }

  restartRelay(downMs: number): void {
    this.killRelay();
    this.#later(downMs, () => this.startRelay());
  }

  restartEngine({ engine, link, ranks }: Party, downMs: number, stepsAhead: number): void {
    if (!engine.isUp) return;
    engine.kill();
    link.cut(!this.setup.hidesRestarts);
    this.#later(downMs, () => {
      if (engine.isUp) return;
      engine.start(stepsAhead);
      this.#logOf(ranks)(`engine up, life ${engine.life}, ${stepsAhead} batches ahead`);
    });
  }

  blockReplays(party: Party, ms: number): void {
    party.replaysBlockedUntilMs = this.clock.nowMs() + ms;
    if (party.path !== null) party.path.blockedUntilMs = party.replaysBlockedUntilMs;
  }

  breakPlane(noticedMs: number, downMs: number): void {
    if (this.nats === null) return;
    this.nats.blockedUntilMs = this.clock.nowMs() + downMs;
    this.nats.break(noticedMs);
  }

  /** Whether a rank's relay says that losses may mislead routers. */
  isDegradedByLoss(rank: number): boolean {
    const relay = this.relays[rank];
    const codes = relay === undefined ? [] : degradedCodes(relay, true);
    return codes.includes('engine_gap') || codes.includes('recovered_with_loss');
  }

  /** What the rank's relay believes that routers hold. */
  indexed(rank: number): string[] {
    const events = this.#dumpOf(rank);
    return events.flatMap(({ tier, hashes }) => hashes.map((hash) => blockKey(tier, hash))).sort();
  }

  #dumpOf(rank: number): PublishedEvent[] {
    const blocks = this.relays[rank]?.indexer?.blocks;
    return blocks ? dumpOf(blocks).filter((event) => event.rank === rank) : [];
  }

  #createParty(ranks: readonly number[]): Party {
    const { setup, clock } = this;
    const log = this.#logOf(ranks);
    const random = this.#random.fork(`party ${ranks.join()}`);
    const { clears, lowerTiers, bufferBatches, stepMs, asMaps } = setup;
    const engine = new SimulatedEngine(
      { ranks, bufferBatches, stepMs, asMaps, habits: { clears, lowerTiers } },
      clock,
      random.fork('engine'),
      new Witness(),
    );
    const link = new EngineLink(engine, setup.lagsLinkEvents, clock, random.fork('link'), log);
    return { engine, link, ranks, listener: null, path: null, replaysBlockedUntilMs: 0 };
  }

  #connect(party: Party, random: Random): void {
    const { clock, setup } = this;
    const { engine, link, ranks } = party;
    const log = this.#logOf(ranks);
    const source = new EngineSource({
      config: this.#config,
      relays: this.relays.filter(({ dpRank }) => ranks.includes(dpRank)),
      logger: silent as never,
      warner: silent,
    });
    const listener = source.listener as unknown as SimulatedListener;
    const path = new ReplayPath(engine, listener, clock, random.fork(`replays ${ranks[0]}`), log);
    path.kinds = setup.answers;
    path.blockedUntilMs = party.replaysBlockedUntilMs;
    listener.attach({ clock, witness: engine.witness, transport: path, log });
    party.listener = listener;
    party.path = path;
    link.attach(listener);
  }

  #query(rank: number): void {
    this.clock.schedule(() => {
      const relay = this.relays[rank];
      // The next relay is another source, which begins anew.
      if (relay === undefined) return;
      const lastEventId = relay.lastEventId ?? 0;
      this.subscriber.takeDump(rank, {
        lastEventId,
        events: this.#dumpOf(rank),
        published: this.#published.get(rank)?.keys ?? [],
      });
    }, DUMP_MS);
  }

  /** Lines about one engine socket, where there are several. */
  #logOf(ranks: readonly number[]): (text: string) => void {
    if (this.setup.isShared || this.setup.ranks === 1) return this.log;
    return (text) => this.log(`rank ${ranks[0]}: ${text}`);
  }

  #later(ms: number, act: () => void): void {
    this.clock.schedule(act, ms);
  }
}

function configFor(setup: Setup): WorkerConfig {
  const flags: Readonly<Record<string, string | number>> = {
    '--worker-id': 7,
    '--block-size': BLOCK_SIZE,
    '--event-plane': 'nats',
    '--dp-size': setup.ranks,
    '--engine-sockets': setup.isShared ? 'shared' : 'per-rank',
    '--on-engine-gap': setup.policy,
    '--replay-hold-batches': setup.holdBatches,
    '--replay-hold-bytes': setup.holdBytes,
    '--replay-idle-ms': setup.idleMs,
    '--replay-cooldown-ms': setup.cooldownMs,
    '--batching-timeout-ms': setup.batchingTimeoutMs,
    '--max-batch-blocks': setup.maxBatchBlocks,
    '--outbox-bytes': setup.outboxBytes,
    '--nats-resume-delay-ms': setup.resumeDelayMs,
    ...(setup.hasReplay && { '--replay-endpoint': 'tcp://127.0.0.1:6557' }),
  };
  return configOf(...Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)]));
}
