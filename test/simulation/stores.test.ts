/**
 * Seeded histories of a store beside its follower, on a clock of their own: lost messages, dropped events,
 * restarts, objects that vanish, a master that fails, answers that cross with events, repeats.
 *
 * At rest  with a master, tenant `default` is exactly what the master holds; other tenants, and keys that
 *          cannot be asked for, are held only where the master holds them too.
 *          Without a master nothing is held that the master does not hold.
 *          Who follows the changes has the same state.
 *
 *     KVRELAY_SEED=5000 KVRELAY_RUNS=20000 npx vitest run test/simulation/stores
 */
import { expect, test } from 'vitest';
import { SourceMetrics } from '../../src/metrics/source-metrics.ts';
import { isAskable } from '../../src/stores/mooncake/key-list.ts';
import { MooncakeFollower } from '../../src/stores/mooncake/mooncake-follower.ts';
import type { ObjectChange } from '../../src/stores/objects/object-change.ts';
import { ObjectState } from '../../src/stores/objects/object-state.ts';
import { scaled } from '../support/whole.ts';
import { Random } from './random.ts';
import { SimulatedStore } from './simulated-store.ts';
import { SimulatedStoreClock } from './store-clock.ts';

const firstSeed = Number(process.env.KVRELAY_SEED ?? 1);
const seedCount = Number(process.env.KVRELAY_RUNS ?? scaled(300, 10_000));

const KEYS = 40;
const TENANTS = ['default', 'default', 'default', 't1'];

class History {
  readonly random: Random;
  readonly clock = new SimulatedStoreClock();
  readonly metrics = new SourceMetrics();
  readonly store: SimulatedStore;
  readonly follower: MooncakeFollower;
  readonly state: ObjectState;
  /** What a consumer of the changes has. */
  readonly followed = new Map<string, string>();
  readonly hasMaster: boolean;
  /** Objects may go without an event, and then only a comparison by the clock finds them. */
  readonly mayVanish: boolean;
  #lives = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.hasMaster = this.random.chance(0.75);
    this.mayVanish = this.hasMaster && this.random.chance(0.4);
    const { random } = this;
    const faults = {
      loss: random.chance(0.6) ? random.next() * 0.2 : 0,
      drop: random.chance(0.4) ? random.next() * 0.1 : 0,
      failure: random.chance(0.4) ? random.next() * 0.3 : 0,
      eventMs: random.chance(0.5) ? 5 : 800,
      askMs: random.chance(0.5) ? 5 : 600,
    };
    this.state = new ObjectState({
      maxObjects: 10_000,
      maxKeyBytes: 1 << 20,
      maxScopes: 16,
      maxAttributeSets: 16,
      onChange: (change) => this.#follow(change),
    });
    this.store = new SimulatedStore(this.clock, random.fork('store'), faults, (sequence, payload) =>
      this.follower.view.take(sequence, payload),
    );
    this.follower = new MooncakeFollower({
      state: this.state,
      metrics: this.metrics,
      clock: this.clock,
      master: this.hasMaster ? this.store : null,
      reconcileEveryMs: this.mayVanish ? 60_000 : 0,
      maxHeldBytes: random.chance(0.3) ? 2000 : 1 << 20,
      warner: { warn: () => undefined },
    });
  }

  async play(): Promise<void> {
    const { random, follower, clock } = this;
    // Some objects are there before anybody follows.
    for (let count = random.below(20); count > 0; count--) this.#act();
    await clock.run(1000);
    follower.start();
    follower.takeLink(true);
    for (let count = random.between(20, 300); count > 0; count--) {
      this.#act();
      if (random.chance(0.5)) await clock.run(random.next() * 300);
      if (random.chance(0.01)) follower.takeLink(true);
    }
    await this.#rest();
  }

  #act(mayRestart = true): void {
    const { random, store } = this;
    const tenant = random.pick(TENANTS);
    const comma = random.chance(0.05) ? ',' : '';
    const key = `key${comma}${random.below(KEYS)}`;
    const roll = random.next();
    if (roll < 0.4) store.put(tenant, key, 'cpu');
    else if (roll < 0.55) store.put(tenant, key, 'disk');
    else if (roll < 0.7) store.remove(tenant, key);
    else if (roll < 0.78) store.remove(tenant, key, 'cpu');
    else if (roll < 0.86) {
      store.remove(tenant, key);
      store.put(tenant, key, 'cpu');
    } else if (roll < 0.87) store.removeGarbled(tenant, key);
    else if (roll < 0.9) store.repeatRemoved(tenant, key);
    else if (roll < 0.94 && this.mayVanish) store.vanish('default', key);
    else if (roll < 0.96) store.removeAll(tenant);
    else if (roll < 0.97 && mayRestart) this.#restart();
    else store.flush();
  }

  /** Its socket goes with it, so there is a new link some time later, behind what was on the way. */
  #restart(): void {
    this.store.restart();
    const life = ++this.#lives;
    const delayMs = Math.max(this.random.next() * 3000, this.store.onTheWayMs);
    this.clock.schedule(() => {
      if (life !== this.#lives) return;
      this.store.isLinked = true;
      this.follower.takeLink(true);
    }, delayMs);
  }

  /** No more faults, and time for everything that is under way. */
  async #rest(): Promise<void> {
    const { store, random } = this;
    await this.clock.run(3000);
    // A life of which nothing arrives, with as many messages as the one before, cannot be told from it.
    const isTailLost = this.hasMaster && random.chance(0.3) && store.hasSpoken;
    if (isTailLost) {
      store.faults.loss = 1;
      for (let count = random.between(1, 5); count > 0; count--) this.#act(false);
      store.flush();
    }
    Object.assign(store.faults, { loss: 0, drop: 0, failure: 0 });
    // Without a master the last loss is seen with the message behind it.
    if (!isTailLost) store.put('default', 'last', 'cpu');
    store.flush();
    await this.clock.run(200_000);
    const stopped = this.follower.stop();
    await this.clock.run(10_000);
    await stopped;
  }

  #follow(change: ObjectChange): void {
    const { tenantId } = change.scope;
    if (change.type === 'cleared') {
      for (const name of this.followed.keys()) {
        if (name.startsWith(`${change.scope.backendId}/${tenantId}/`)) this.followed.delete(name);
      }
      return;
    }
    const key = Buffer.from(change.key).toString();
    const name = `${change.scope.backendId}/${tenantId}/${key}`;
    if (change.media.length === 0) this.followed.delete(name);
    else this.followed.set(name, change.media.join());
  }

  /** What is wrong at rest; null: nothing. */
  verdict(): string | null {
    // Nobody can tell such a life from the one before.
    if (this.store.isSeamless) return null;
    const held = new Map<string, string>();
    for (const scope of this.state.scopes()) {
      for (let entry = 0; entry < scope.table.entryEnd; entry++) {
        const object = this.state.objectAt(scope, entry);
        if (object === null) continue;
        const key = Buffer.from(object.key).toString();
        held.set(`${scope.backendId}/${scope.tenantId}/${key}`, object.media.join());
      }
    }
    if (JSON.stringify(sorted(held)) !== JSON.stringify(sorted(this.followed)))
      return 'who follows the changes has another state';
    if (this.follower.view.isSuspect) return 'still suspect';
    return this.#against(held);
  }

  #against(held: ReadonlyMap<string, string>): string | null {
    const truth = new Map<string, string>();
    for (const [tenant, keys] of this.store.held) {
      for (const [key, media] of keys) {
        truth.set(`mooncake-1/${tenant}/${key}`, [...media].sort().join());
      }
    }
    for (const [name, media] of held) {
      const known = (truth.get(name) ?? '').split(',');
      const extra = media.split(',').filter((medium) => !known.includes(medium));
      // Nobody can find out about these.
      const isBlind = this.mayVanish && name.includes('key,');
      if (extra.length > 0 && !isBlind) return `${name} is held on ${extra.join()}`;
    }
    for (const [name, media] of truth) {
      const isAsked = name.startsWith('mooncake-1/default/') && isAskable(Buffer.from(name));
      if (this.hasMaster && isAsked && held.get(name) !== media)
        return `${name} is on ${media}, held on ${held.get(name) ?? 'nothing'}`;
    }
    return null;
  }
}

function sorted(map: ReadonlyMap<string, string>): string[] {
  return [...map].map(([name, media]) => `${name} ${media}`).sort();
}

test('histories of a store', { timeout: 600_000 }, async () => {
  const failures: string[] = [];
  const seen = { losses: 0, restarts: 0, complete: 0, failed: 0, broken: 0 };
  for (let seed = firstSeed; seed < firstSeed + seedCount && failures.length < 3; seed++) {
    const history = new History(seed);
    await history.play();
    const failure = history.verdict();
    if (failure !== null) failures.push(`seed ${seed}: ${failure}`);
    const { metrics } = history;
    seen.losses += metrics.lostMessages;
    seen.restarts += metrics.restarts;
    seen.complete += metrics.reconciliations.complete;
    seen.failed += metrics.reconciliations.failed;
    seen.broken += metrics.brokenHolds;
  }
  expect(failures.join('\n')).toBe('');
  // The histories are worth something only where all of this comes about.
  if (seedCount < 300) return;
  for (const count of [seen.losses, seen.restarts, seen.complete, seen.failed, seen.broken]) {
    expect(count).toBeGreaterThan(0);
  }
});
