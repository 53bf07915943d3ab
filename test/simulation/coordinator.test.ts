/**
 * Seeded histories of LMCache's MP servers beside the coordinator view: lost posts, crashes that lose the last
 * batches, restarts, clocks set back, leaves, silence, repeats, pools.
 *
 * At rest  nothing is held that LMCache does not hold: of a server its own, of a pool what its servers left there.
 *          Of a server whose batches were all seen everything is held, with its bytes.
 *          Who follows the changes has the same state.
 *
 * Pools    are only played where the last batch of a life arrives: deletions lost with it show in no number.
 *
 *     KVRELAY_SEED=5000 KVRELAY_RUNS=20000 npx vitest run test/simulation/coordinator
 */
import { expect, test } from 'vitest';
import { CoordinatorMetrics } from '../../src/metrics/coordinator-metrics.ts';
import { SourceMetrics } from '../../src/metrics/source-metrics.ts';
import { CoordinatorView } from '../../src/stores/lmcache/coordinator/coordinator-view.ts';
import type { ObjectChange } from '../../src/stores/objects/object-change.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { readBatches, type WireFields, wireBatch, wireEntry } from '../support/cache-batches.ts';
import { scaled } from '../support/whole.ts';
import { Random } from './random.ts';

const firstSeed = Number(process.env.KVRELAY_SEED ?? 1);
const seedCount = Number(process.env.KVRELAY_RUNS ?? scaled(300, 10_000));

const SERVERS = ['a', 'b', 'c'];
const CHUNKS = 12;
const TIMEOUT_MS = 30_000;

interface Place {
  readonly tier: 'l1' | 'l2';
  readonly backend: string;
  readonly shared: boolean;
}

const OWN: readonly Place[] = [
  { tier: 'l1', backend: 'dram', shared: false },
  { tier: 'l2', backend: 'fs', shared: false },
];
const POOL: Place = { tier: 'l2', backend: 's3', shared: true };

/** Holders by chunk, `model@salt/chunk`; a holder's bytes by rank. */
type Contents = Map<string, Map<number, number>>;

interface Key {
  readonly model_name: string;
  readonly cache_salt: string;
  readonly kv_rank: number;
}

interface Server {
  readonly id: string;
  incarnation: number;
  readonly lives: Set<number>;
  seq: number;
  isMember: boolean;
  /** What no post has carried yet. */
  pending: WireFields[];
  late: readonly WireFields[];
  readonly own: Map<string, Contents>;
}

class History {
  readonly random: Random;
  readonly metrics = new SourceMetrics();
  readonly counts = new CoordinatorMetrics();
  readonly state: ObjectState;
  readonly view: CoordinatorView;
  readonly servers: readonly Server[];
  readonly pool: Contents = new Map();
  readonly followed = new Map<string, string>();
  readonly hasPool: boolean;
  loss: number;
  lostPosts = 0;
  #nowMs = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.hasPool = this.random.chance(0.5);
    this.loss = this.random.chance(0.7) ? this.random.next() * 0.15 : 0;
    this.state = new ObjectState({
      maxObjects: 10_000,
      maxKeyBytes: 1 << 20,
      maxScopes: 200,
      maxAttributeSets: 16,
      onChange: (change) => this.#follow(change),
    });
    this.view = new CoordinatorView({
      state: this.state,
      metrics: this.metrics,
      counts: this.counts,
      nowMs: () => this.#nowMs,
      maxHolders: 10_000,
      chunks: null,
      instanceTimeoutMs: TIMEOUT_MS,
      onLoss: () => undefined,
    });
    this.servers = SERVERS.map((id) => ({
      id,
      incarnation: 100_000,
      lives: new Set(),
      seq: 0,
      isMember: false,
      pending: [],
      late: [],
      own: new Map(),
    }));
  }

  play(): void {
    const { random } = this;
    for (let count = random.between(20, 300); count > 0; count--) {
      this.#nowMs += random.next() * 3000;
      this.#act(random.pick(this.servers));
    }
    // The last loss shows with the batch behind it.
    this.loss = 0;
    for (const server of this.servers) {
      this.#tell(server, wireBatch(0, { event_type: 'access', backend: '' }));
      this.#flush(server);
    }
  }

  #act(server: Server): void {
    const { random } = this;
    const roll = random.next();
    if (roll < 0.45) this.#store(server);
    else if (roll < 0.65) this.#delete(server);
    else if (roll < 0.9) this.#flush(server);
    else if (roll < 0.93) this.#restart(server, false);
    else if (roll < 0.95) this.#restart(server, !this.hasPool);
    else if (roll < 0.97) this.#register(server);
    else if (roll < 0.98) this.#leave(server);
    else {
      if (random.chance(0.3)) this.#nowMs += TIMEOUT_MS + 1;
      this.view.sweep();
    }
  }

  #place(): Place {
    return this.hasPool && this.random.chance(0.4) ? POOL : this.random.pick(OWN);
  }

  #contents(server: Server, { shared, tier }: Place): Contents {
    if (shared) return this.pool;
    const contents = server.own.get(tier) ?? new Map();
    server.own.set(tier, contents);
    return contents;
  }

  #key(): Key & { readonly chunk: string } {
    const { random } = this;
    return {
      model_name: random.pick(['m1', 'm2']),
      cache_salt: random.pick(['', '', 't']),
      kv_rank: random.below(2),
      chunk: `c${random.below(CHUNKS)}`,
    };
  }

  #store(server: Server): void {
    const place = this.#place();
    const { chunk, ...key } = this.#key();
    const size_bytes = this.random.between(1, 1000);
    const contents = this.#contents(server, place);
    const name = nameOf(key, chunk);
    contents.set(name, (contents.get(name) ?? new Map()).set(key.kv_rank, size_bytes));
    const entries = [wireEntry(chunk, { ...key, size_bytes })];
    this.#tell(server, wireBatch(0, { ...place, entries }));
    // Between servers of a pool nothing says what came first.
    if (place.shared) this.#flush(server);
  }

  #delete(server: Server): void {
    const place = this.#place();
    const { chunk, ...key } = this.#key();
    const contents = this.#contents(server, place);
    const name = nameOf(key, chunk);
    contents.get(name)?.delete(key.kv_rank);
    if (contents.get(name)?.size === 0) contents.delete(name);
    const entries = [wireEntry(chunk, key)];
    this.#tell(server, wireBatch(0, { ...place, event_type: 'delete', entries }));
    if (place.shared) this.#flush(server);
  }

  #tell(server: Server, batch: WireFields): void {
    const { id: instance_id, incarnation } = server;
    server.pending.push({ ...batch, instance_id, incarnation, seq: ++server.seq });
    if (this.random.chance(0.3)) this.#flush(server);
  }

  #flush(server: Server): void {
    const { random } = this;
    const batches = server.pending;
    server.pending = [];
    if (batches.length === 0) return;
    if (random.chance(this.loss)) {
      this.lostPosts++;
      return;
    }
    this.view.take(readBatches(...batches));
    // A post whose answer was late is sent again by something between, now or in another life.
    if (random.chance(0.05)) this.view.take(readBatches(...batches));
    const roll = random.next();
    if (roll < 0.05) server.late = batches;
    else if (roll < 0.1) this.view.take(readBatches(...server.late));
  }

  /** A crash takes along what was not posted. Its memory is empty; its own disk may be too. */
  #restart(server: Server, isCrash: boolean): void {
    if (isCrash) server.pending = [];
    else this.#end(server);
    this.#begin(server);
  }

  #end(server: Server): void {
    const { loss } = this;
    if (this.hasPool) {
      this.loss = 0;
      this.#tell(server, wireBatch(0, { event_type: 'access', backend: '' }));
    }
    this.#flush(server);
    this.loss = loss;
  }

  /** Two lives never begin within one second. */
  #begin(server: Server, step = 1): void {
    server.own.delete('l1');
    if (this.random.chance(0.5)) server.own.delete('l2');
    server.lives.add(server.incarnation);
    do server.incarnation += step * this.random.between(1, 10);
    while (server.lives.has(server.incarnation));
    server.seq = 0;
  }

  #register(server: Server): void {
    this.view.noteRegistration(server.id);
    server.isMember = true;
  }

  /** It leaves before it posts what is left, as LMCache does, and comes again with its clock set back perhaps. */
  #leave(server: Server): void {
    this.view.leave(server.id);
    this.#end(server);
    const isSetBack = this.random.chance(0.3);
    this.#begin(server, isSetBack ? -1 : 1);
    if (isSetBack) this.#register(server);
  }

  #follow(change: ObjectChange): void {
    const { backendId, tenantId } = change.scope;
    if (change.type === 'cleared') {
      for (const name of this.followed.keys()) {
        if (name.startsWith(`${backendId} ${tenantId} `)) this.followed.delete(name);
      }
      return;
    }
    const name = `${backendId} ${tenantId} ${Buffer.from(change.key).toString()}`;
    if (change.media.length === 0) this.followed.delete(name);
    else this.followed.set(name, change.media.join());
  }

  /** What is wrong at rest; null: nothing. */
  verdict(): string | null {
    const held = new Set<string>();
    const heldMedia = new Map<string, string>();
    for (const scope of this.state.scopes()) {
      for (let entry = 0; entry < scope.table.entryEnd; entry++) {
        const object = this.state.objectAt(scope, entry);
        if (object === null) continue;
        const name = `${scope.backendId} ${scope.tenantId} ${Buffer.from(object.key).toString()}`;
        heldMedia.set(name, object.media.join());
        for (const medium of object.media) held.add(`${name} ${medium}`);
      }
    }
    if (sorted(heldMedia).join() !== sorted(this.followed).join())
      return 'who follows the changes has another state';
    const truth = this.#truth();
    for (const name of held) if (!truth.has(name)) return `${name} is held`;
    return this.#missing(held);
  }

  #truth(): Set<string> {
    const truth = new Set(objectsOf('shared:l2/s3', 'l2/s3', this.pool));
    for (const { id, own } of this.servers) {
      for (const { tier, backend } of OWN) {
        const medium = `${tier}/${backend}`;
        for (const name of objectsOf(`server:${id}`, medium, own.get(tier) ?? new Map()))
          truth.add(name);
      }
    }
    return truth;
  }

  /** L2 that outlives a restart is not told of again. */
  #missing(held: ReadonlySet<string>): string | null {
    for (const { id, own } of this.servers) {
      const instance = this.view.instances.find(id);
      if (instance?.isWhole !== true) continue;
      const contents = own.get('l1') ?? new Map();
      for (const name of objectsOf(`server:${id}`, 'l1/dram', contents)) {
        if (!held.has(name)) return `${name} is not held`;
      }
      const bytes = [...contents.values()].flatMap((ranks) => [...ranks.values()]);
      const sum = bytes.reduce((all, one) => all + one, 0);
      const shown = instance.own.get('l1/dram')?.bytes ?? 0;
      if (shown !== sum) return `${id} has ${sum} bytes in L1, shown are ${shown}`;
    }
    return null;
  }
}

function sorted(media: ReadonlyMap<string, string>): string[] {
  return [...media].map(([name, list]) => `${name} ${list}`).sort();
}

function nameOf({ model_name, cache_salt }: Key, chunk: string): string {
  const salt = cache_salt === '' ? '' : `@${cache_salt}`;
  return `${model_name}${salt} ${Buffer.from(chunk).toString('hex')}`;
}

function objectsOf(backendId: string, medium: string, contents: Contents): string[] {
  return [...contents.keys()].map((name) => `${backendId} ${name} ${medium}`);
}

test('histories of MP servers', { timeout: 600_000 }, () => {
  const failures: string[] = [];
  const seen = { losses: 0, restarts: 0, duplicates: 0, stale: 0, expired: 0, whole: 0 };
  for (let seed = firstSeed; seed < firstSeed + seedCount && failures.length < 3; seed++) {
    const history = new History(seed);
    history.play();
    const failure = history.verdict();
    if (failure !== null) failures.push(`seed ${seed}: ${failure}`);
    seen.losses += history.metrics.lostMessages;
    seen.restarts += history.metrics.restarts;
    seen.duplicates += history.counts.batches.duplicates;
    seen.stale += history.counts.batches.stale;
    seen.expired += history.counts.expiredInstances;
    for (const { isWhole } of history.view.instances.all()) seen.whole += Number(isWhole);
  }
  expect(failures.join('\n')).toBe('');
  // The histories are worth something only where all of this comes about.
  if (seedCount < 300) return;
  for (const [what, count] of Object.entries(seen)) expect([what, count > 0]).toEqual([what, true]);
});
