/**
 * Seeded histories of an LMCache server beside its subscriptions, on a clock of their own: losses on its bus, a log
 * that forgets, restarts, links that break, requests without an answer, subscriptions that end.
 *
 * At rest  of each model nothing is held that the server does not hold, and everything that its log still tells.
 *          A router finds of each prompt what the engine has, and behind it what is held.
 *
 *     KVRELAY_SEED=5000 KVRELAY_RUNS=20000 npx vitest run test/simulation/lmcache-stream
 */
import { expect, test } from 'vitest';
import { SourceMetrics } from '../../src/metrics/source-metrics.ts';
import { StreamView } from '../../src/stores/lmcache-stream/stream-view.ts';
import { StreamSubscription } from '../../src/stores/lmcache-stream/subscription.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { ChunkTrial, hashOf } from '../stores/placement/chunk-trial.ts';
import { scaled } from '../support/whole.ts';
import { Random } from './random.ts';
import { SimulatedLink, SimulatedLmcache } from './simulated-lmcache.ts';
import { SimulatedStoreClock } from './store-clock.ts';

const firstSeed = Number(process.env.KVRELAY_SEED ?? 1);
const seedCount = Number(process.env.KVRELAY_RUNS ?? scaled(300, 10_000));

/** The first is the worker's own. */
const MODELS = ['m', 'other'];

/** A chunk of two blocks a step. */
function tokensOf(path: readonly number[]): number[] {
  return path.flatMap((way) => [way, 10 + way, 20 + way, 30 + way]);
}

function nameOf(tokens: readonly number[]): bigint {
  return BigInt(`1${tokens.map((token) => String(token).padStart(2, '0')).join('')}`) % 2n ** 61n;
}

interface Followed {
  readonly model: string;
  readonly view: StreamView;
  readonly subscription: StreamSubscription;
  readonly link: SimulatedLink;
}

class History {
  readonly random: Random;
  readonly clock = new SimulatedStoreClock();
  readonly metrics = new SourceMetrics();
  readonly server: SimulatedLmcache;
  readonly chunks = new ChunkTrial();
  readonly state: ObjectState;
  readonly streams: readonly Followed[];
  readonly #faults: { drop: number; deaf: number };
  readonly #mayCut: boolean;

  constructor(seed: number) {
    this.random = new Random(seed);
    const { random } = this;
    this.#faults = {
      drop: random.chance(0.4) ? random.next() * 0.1 : 0,
      deaf: random.chance(0.3) ? random.next() * 0.5 : 0,
    };
    this.#mayCut = random.chance(0.6);
    const maxRecords = random.chance(0.4) ? random.between(3, 30) : 10_000;
    this.server = new SimulatedLmcache(random.fork('server'), maxRecords, { ...this.#faults });
    this.state = new ObjectState({
      maxObjects: 10_000,
      maxKeyBytes: 1 << 20,
      maxScopes: 16,
      maxAttributeSets: 16,
      onChange: () => undefined,
    });
    const maxDelayMs = random.chance(0.5) ? 5 : 800;
    this.streams = MODELS.map((model, index) => this.#follow(model, index, maxDelayMs));
  }

  #follow(model: string, index: number, maxDelayMs: number): Followed {
    const { metrics, clock, random, server } = this;
    const view = new StreamView({
      modelName: model,
      state: this.state,
      metrics,
      feed: this.chunks.placements.feed(),
      onLoss: () => undefined,
      defer: (portion) => void clock.schedule(portion, 0),
    });
    const link: SimulatedLink = new SimulatedLink({
      clock,
      random: random.fork(`link ${index}`),
      maxDelayMs,
      server,
      onMessage: (frames) => subscription.take(frames),
      onLink: (isLinked) => subscription.takeLink(isLinked),
    });
    const subscription: StreamSubscription = new StreamSubscription({
      view,
      metrics,
      clock,
      instanceId: 2 ** 40 + index,
      modelName: model,
      pageRecords: random.between(1, 8),
      send: (frames) => link.toServer(frames),
      onFailure: () => undefined,
    });
    return { model, view, subscription, link };
  }

  async play(): Promise<void> {
    const { random, clock } = this;
    for (let count = random.below(20); count > 0; count--) this.#act();
    for (const { link } of this.streams) link.up();
    for (let count = random.between(20, 200); count > 0; count--) {
      this.#act();
      if (random.chance(0.3)) await clock.run(random.next() * 3000);
      if (random.chance(0.3)) this.chunks.turn();
      if (this.#mayCut && random.chance(0.03)) this.#cut();
    }
    await this.#rest();
  }

  #path(): number[] {
    return Array.from({ length: this.random.between(1, 3) }, () => this.random.between(1, 2));
  }

  #act(): void {
    const { random, server, chunks } = this;
    const path = this.#path();
    const tokens = tokensOf(path);
    const model = random.pick(MODELS);
    const roll = random.next();
    const hash = Buffer.from(hashOf(tokens));
    const parent = path.length === 1 ? null : Buffer.from(hashOf(tokens.slice(0, -4)));
    if (roll < 0.5) server.store(model, hash, parent, tokens.slice(-4));
    else if (roll < 0.75) server.evict(model, hash);
    else if (roll < 0.78) server.evict(model, hash, Buffer.from(hashOf(tokensOf(this.#path()))));
    else if (roll < 0.92) {
      const blocks = path.flatMap((_, at) => [
        tokens.slice(0, at * 4 + 2),
        tokens.slice(0, at * 4 + 4),
      ]);
      chunks.engineStores(null, blocks.map(nameOf), tokens);
    } else if (roll < 0.95) chunks.clears();
    else if (roll < 0.96) this.#restart();
    else if (roll < 0.98) server.end();
  }

  /** Its links go with it. */
  #restart(): void {
    for (const { link } of this.streams) this.#cutOne(link);
    this.server.restart();
  }

  #cut(): void {
    this.#cutOne(this.random.pick(this.streams).link);
  }

  #cutOne(link: SimulatedLink): void {
    if (!link.isUp) return;
    link.cut();
    // Sometimes for longer than anybody believes what was told before.
    const awayMs = this.random.next() * (this.random.chance(0.2) ? 200_000 : 5000);
    this.clock.schedule(() => link.up(), awayMs);
  }

  async #rest(): Promise<void> {
    Object.assign(this.server.faults, { drop: 0, deaf: 0 });
    await this.clock.run(600_000);
    this.chunks.turn();
  }

  verdict(): string | null {
    for (const { model, view, subscription } of this.streams) {
      if (subscription.state !== 'live') return `${model} is ${subscription.state}`;
      const held = this.#held(model);
      if (held.size !== view.objects) return `${model} counts ${view.objects} objects`;
      const truth = this.server.l1(model);
      for (const hash of held) if (!truth.has(hash)) return `${model} ${hash} is not there`;
      for (const hash of this.server.inLog(model)) {
        if (!held.has(hash)) return `${model} ${hash} is missing`;
      }
    }
    return this.#routerVerdict(this.#held('m'));
  }

  #held(model: string): Set<string> {
    const scope = this.state.scope({ source: 'lmcache', backendId: 'l1', tenantId: model });
    return new Set([...(scope?.table.keys() ?? [])].map((key) => Buffer.from(key).toString()));
  }

  /** What routers find is there; and where a chain is held from its start, it is found. */
  #routerVerdict(held: ReadonlySet<string>): string | null {
    for (const path of [0, 1, 2, 3, 4, 5, 6, 7].map((n) => [
      1 + (n & 1),
      1 + ((n >> 1) & 1),
      1 + (n >> 2),
    ])) {
      const tokens = tokensOf(path);
      const found = this.chunks.match(tokens);
      const isHeldAt = (block: number): boolean =>
        held.has(
          Buffer.from(hashOf(tokens.slice(0, Math.floor(block / 2) * 4 + 4))).toString('hex'),
        );
      let end = found.device;
      while (end < 6 && isHeldAt(end)) end++;
      if (found.host_pinned > end - found.device) return `${path.join()} is found too long`;
      let fromStart = 0;
      while (fromStart < 6 && isHeldAt(fromStart)) fromStart++;
      const known = Math.max(fromStart - found.device, 0);
      if (found.host_pinned < known) return `${path.join()} is found too short`;
    }
    return null;
  }
}

test("histories of an LMCache server's stream", { timeout: 600_000 }, async () => {
  const failures: string[] = [];
  const seen = { lost: 0, restarts: 0, losses: 0, applied: 0, placed: 0 };
  for (let seed = firstSeed; seed < firstSeed + seedCount && failures.length < 3; seed++) {
    const history = new History(seed);
    await history.play();
    const failure = history.verdict();
    if (failure !== null) failures.push(`seed ${seed}: ${failure}`);
    history.chunks.index.free();
    seen.lost += history.server.lost;
    seen.restarts += history.metrics.restarts;
    seen.losses += history.metrics.lostMessages;
    seen.applied += history.metrics.events.stored.applied;
    seen.placed += history.chunks.placements.placedBlocks;
  }
  expect(failures.join('\n')).toBe('');
  // The histories are worth something only where all of this comes about.
  if (seedCount < 300) return;
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
});
