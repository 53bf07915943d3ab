/**
 * World: engines, networks, one relay process, routers and a subscriber, on one clock.
 *
 * Real     the relay process from the engine's stream to the plane: EngineSource with its reader, EngineStream
 *          with its sequencer, and what a RelayProcess has.
 * Played   what the process has sockets for, and the other parties.
 */
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import { EngineSource } from '../../src/engine-source.ts';
import type { Relay } from '../../src/relay.ts';
import { EngineLink } from './engine-link.ts';
import { IdWatch, readDelivery } from './plane-delivery.ts';
import type { Random } from './random.ts';
import { configFor } from './relay-config.ts';
import { RelayProcess, silent, sliceDumps } from './relay-process.ts';
import { ReplayPath } from './replay-path.ts';
import type { Setup } from './setup.ts';
import { SimulatedEngine } from './simulated-engine.ts';
import type { SimulatedListener } from './simulated-listener.ts';
import { SimulatedNet, useNet } from './simulated-net.ts';
import { SimulatedRegistry } from './simulated-registry.ts';
import { StockRouter } from './stock-router.ts';
import { type Dump, Subscriber } from './subscriber.ts';
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

const DUMP_MS = 20;
/** Until the plane has connected again and sent what it kept. */
const RECONNECT_MS = 6000;

export class World {
  readonly setup: Setup;
  readonly clock: VirtualClock;
  readonly parties: readonly Party[];
  readonly subscriber: Subscriber;
  readonly log: (text: string) => void;
  readonly net: SimulatedNet;
  readonly registry: SimulatedRegistry;
  readonly routers: readonly StockRouter[];
  readonly ids: IdWatch = new IdWatch();
  /** Null while none runs. */
  process: RelayProcess | null = null;
  /** Routers may be without a message, or an answer, until then. */
  disturbedUntilMs = 0;
  /** What processes that are gone did wrong. */
  readonly complaints: string[] = [];
  readonly #config: WorkerConfig;
  readonly #random: Random;
  #relayStarts = 0;

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
    this.net = new SimulatedNet(clock, random.fork('net'));
    useNet(this.net);
    clock.followsTimers = () => this.net.isInUse;
    this.registry = new SimulatedRegistry(clock, random.fork('registry'));
    this.routers = Array.from({ length: setup.routers }, (_, number) => this.#createRouter(number));
    sliceDumps(clock, random.fork('dumps'), setup.dumpPacesMs);
  }

  /** By rank; empty while no relay process runs. */
  get relays(): readonly Relay[] {
    return this.process?.relays ?? [];
  }

  start(): void {
    for (const { engine } of this.parties) engine.start(this.setup.headStart);
    this.startRelay();
    for (const [number, router] of this.routers.entries()) {
      this.#later(this.setup.joinMs * number, () => router.start());
    }
  }

  startRelay(): void {
    if (this.process !== null) return;
    const { clock, subscriber, net, registry, log } = this;
    const random = this.#random.fork(`relay ${this.#relayStarts++}`);
    this.process = new RelayProcess({
      config: this.#config,
      clock,
      net,
      registry,
      random,
      deliver: (envelope) => this.#deliver(envelope),
      onSuperseded: (rank) => this.#supersede(rank),
      log,
    });
    for (const { dpRank, publisherId } of this.relays) subscriber.announce(dpRank, publisherId);
    for (const party of this.parties) this.#connect(party, random);
    this.process.start();
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
    const watches = this.process?.watches ?? [];
    this.complaints.push(...watches.flatMap(({ complaints }) => complaints));
    this.process?.kill(this.#random.chance(0.3));
    this.process = null;
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
    if (this.process === null) return;
    this.disturb(noticedMs + downMs + RECONNECT_MS);
    this.process.nats.blockedUntilMs = this.clock.nowMs() + downMs;
    this.process.nats.break(noticedMs);
  }

  disturb(ms: number): void {
    this.disturbedUntilMs = Math.max(this.disturbedUntilMs, this.clock.nowMs() + ms);
  }

  restartRouter(router: StockRouter, downMs: number): void {
    router.stop();
    this.#later(downMs, () => router.start());
  }

  #createRouter(number: number): StockRouter {
    const { net, registry, log, setup } = this;
    const { namespace, component, endpoint } = this.#config;
    return new StockRouter({
      net,
      registry,
      log,
      rankCount: setup.ranks,
      endpoint: { namespace, component, endpoint },
      name: `router ${number}`,
      nats: () => this.process?.nats ?? null,
      random: this.#random.fork(`router ${number}`),
    });
  }

  #deliver(envelope: Uint8Array): void {
    const delivery = readDelivery(envelope);
    this.ids.take(delivery);
    this.subscriber.take(delivery);
    for (const router of this.routers) router.deliver(delivery);
  }

  #createParty(ranks: readonly number[]): Party {
    const { setup, clock } = this;
    const log = this.#logOf(ranks);
    const random = this.#random.fork(`party ${ranks.join()}`);
    const { bufferBatches, stepMs, asMaps } = setup;
    const engine = new SimulatedEngine(
      { ranks, bufferBatches, stepMs, asMaps, habits: setup },
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
    Object.assign(party, { listener, path });
    link.attach(listener);
  }

  #query(rank: number): void {
    this.#later(DUMP_MS, () => {
      const dump = this.#dumpOf(rank);
      if (dump !== null) this.subscriber.takeDump(rank, dump);
    });
  }

  #supersede(rank: number): void {
    const dump = this.#dumpOf(rank);
    const publisherId = this.relays[rank]?.publisherId;
    if (dump !== null && publisherId !== undefined) {
      this.subscriber.supersede(rank, publisherId, dump);
    }
  }

  /** Null without a relay: the next one is another source, which begins anew. */
  #dumpOf(rank: number): Dump | null {
    const watch = this.process?.watches[rank];
    return watch ? { lastEventId: watch.relay.lastEventId ?? 0, published: watch.keys } : null;
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
