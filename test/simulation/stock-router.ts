/**
 * StockRouter: a router process as a stock one behaves: it finds sources in the registry, follows their
 * events on the plane and asks for what it has missed.
 *
 * Link     from the plane's server, in order; what it loses nobody sends again.
 * Ranks    one source each: none or two of them, and it holds nothing of the rank.
 */
import { z } from 'zod';
import { type KvEndpoint, sourcePrefix } from '../../src/protocol/discovery-keys.ts';
import { readSourceClaim } from '../../src/protocol/discovery-records.ts';
import { parseLosslessJson } from '../../src/protocol/lossless-json.ts';
import type { Records } from '../../src/router/discovery/discovery.ts';
import type { PlaneDelivery } from './plane-delivery.ts';
import type { Random } from './random.ts';
import { type AskingPorts, RouterAsking } from './router-asking.ts';
import { RouterRank, type SourceTarget } from './router-rank.ts';
import type { SimulatedRegistry } from './simulated-registry.ts';

export interface RouterPorts extends AskingPorts {
  readonly registry: SimulatedRegistry;
  readonly endpoint: KvEndpoint;
  readonly rankCount: number;
}

type Source = SourceTarget & { readonly dpRank: number };

const targetShape = z.object({
  metadata: z.object({
    recovery_target: z.object({
      transport: z.object({ tcp: z.string().optional(), nats_tcp: z.string().optional() }),
      request_plane_codec: z.enum(['msgpack', 'json']),
    }),
  }),
});

/** Applying an answer takes a router a while. */
const APPLY_MS = [0, 0, 20, 80];

export class StockRouter {
  readonly name: string;
  readonly #ports: RouterPorts;
  readonly #random: Random;
  #ranks: readonly RouterRank[] = [];
  #asking: RouterAsking | null = null;
  #endWatch: () => void = () => undefined;
  /** By their records, which never change. */
  readonly #known = new Map<string, Source>();
  /** Counts its processes. */
  #life = 0;
  #lastDeliveryMs = 0;
  stalledUntilMs = 0;
  lossRate = 0;
  /** Ids that the link has lost, by publisher. */
  readonly lost: Map<number, Set<number>> = new Map();

  constructor(ports: RouterPorts) {
    this.name = ports.name;
    this.#ports = ports;
    this.#random = ports.random;
  }

  get isUp(): boolean {
    return this.#asking !== null;
  }

  /** Empty while it is down. */
  get ranks(): readonly RouterRank[] {
    return this.#ranks;
  }

  start(): void {
    if (this.isUp) return;
    const { registry, endpoint, rankCount } = this.#ports;
    const asking = new RouterAsking({ ...this.#ports, name: `${this.name}.${this.#life}` });
    this.#asking = asking;
    this.#ranks = Array.from({ length: rankCount }, (_, number) => {
      const rank = new RouterRank(number, (target, startEventId) => {
        const query = asking.ask({
          target,
          startEventId,
          rank: number,
          // An answer that is being applied is a query that still runs.
          onAnswer: (answer) =>
            this.#later(() => {
              if (rank.query === query) rank.takeAnswer(answer);
            }),
        });
        return query;
      });
      return rank;
    });
    this.#endWatch = registry.watch('v1/event_sources', sourcePrefix(endpoint), (records) =>
      this.#follow(records),
    );
  }

  stop(): void {
    this.#life++;
    this.#endWatch();
    this.#asking?.stop();
    this.#asking = null;
    this.#ranks = [];
    this.#lastDeliveryMs = 0;
  }

  /** From the plane's server. */
  deliver(delivery: PlaneDelivery): void {
    if (!this.isUp) return;
    const { publisherId, events } = delivery;
    if (this.#random.chance(this.lossRate)) {
      const lost = this.lost.get(publisherId) ?? new Set();
      this.lost.set(publisherId, lost);
      for (const { id } of events) lost.add(Number(id));
      return;
    }
    const { clock } = this.#ports.net;
    const nowMs = clock.nowMs();
    const latencyMs = this.#random.pick([0.2, 0.5, 4]);
    const atMs = Math.max(nowMs + latencyMs, this.#lastDeliveryMs, this.stalledUntilMs);
    this.#lastDeliveryMs = atMs;
    const life = this.#life;
    clock.schedule(() => {
      if (life !== this.#life) return;
      for (const rank of this.#ranks) rank.take(publisherId, events);
    }, atMs - nowMs);
  }

  #follow(records: Records): void {
    const { endpoint } = this.#ports;
    const sources = [...records.values()].flatMap((value) => {
      const source = this.#known.get(value) ?? sourceOf(value, endpoint);
      if (source !== null) this.#known.set(value, source);
      return source ?? [];
    });
    for (const rank of this.#ranks) {
      const [only, other] = sources.filter(({ dpRank }) => dpRank === rank.rank);
      rank.follow(only === undefined || other !== undefined ? null : only);
    }
  }

  #later(apply: () => void): void {
    const life = this.#life;
    this.#ports.net.clock.schedule(() => {
      if (life === this.#life) apply();
    }, this.#random.pick(APPLY_MS));
  }
}

function sourceOf(value: string, endpoint: KvEndpoint): Source | null {
  const claim = readSourceClaim(value, endpoint);
  if (claim === null) return null;
  const { transport, request_plane_codec: codec } = targetShape.parse(parseLosslessJson(value))
    .metadata.recovery_target;
  const { workerId, dpRank } = claim;
  return { publisherId: Number(claim.publisherId), workerId, dpRank, transport, codec };
}
