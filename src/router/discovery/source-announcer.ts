/**
 * SourceAnnouncer: the records of one rank's source, brought to where they should be, one step at a time.
 *
 * Announces  leftovers of an earlier life away, channel, recovery endpoint with its query instance, source:
 *            a router queries within milliseconds, so everything has to be ready before the source stands.
 * Withdraws  source, query instance and endpoint, channel.
 * Concedes   by its source record alone: that is what makes a claim.
 * Never      throws: a backend that cannot be reached keeps what was put for later.
 */
import type { DiscoveryMetrics } from '../../metrics/discovery-metrics.ts';
import { queryInstancePrefix, sourcePrefix } from '../../protocol/discovery-keys.ts';
import {
  type ChannelTransport,
  channelRecord,
  type DiscoveryRecord,
  isOwnLeftover,
  queryInstanceRecord,
  type RelayMark,
  type SourceIdentity,
  sourceRecord,
} from '../../protocol/discovery-records.ts';
import type { RecoveryEndpoint } from '../recovery-endpoint.ts';
import type { Discovery } from './discovery.ts';

export interface WantedSource {
  readonly source: SourceIdentity;
  /** Null where the plane needs no channel record. */
  readonly channel: ChannelTransport | null;
  /** False: everything but the source record stands, so that nobody is contradicted. */
  readonly isClaimed: boolean;
}

export interface SourceAnnouncerDeps {
  readonly discovery: Discovery;
  readonly mark: RelayMark;
  /** Null: the source is live-only. */
  readonly recovery: RecoveryEndpoint | null;
  readonly metrics: DiscoveryMetrics;
}

interface Standing {
  readonly source: SourceIdentity;
  readonly channel: DiscoveryRecord | null;
  /** Null where the source is live-only. */
  readonly queryInstance: DiscoveryRecord | null;
  readonly claim: DiscoveryRecord;
  isClaimed: boolean;
}

export class SourceAnnouncer {
  readonly #deps: SourceAnnouncerDeps;
  #wanted: WantedSource | null = null;
  #settled: WantedSource | null = null;
  #standing: Standing | null = null;
  #settling: Promise<void> | null = null;

  constructor(deps: SourceAnnouncerDeps) {
    this.#deps = deps;
  }

  /** True where the source record has been put, and is the one that is wanted now. */
  get isAnnounced(): boolean {
    return !this.isOnItsWay && this.#standing?.isClaimed === true;
  }

  /** Routers are told whom to ask for what they missed. */
  get isRecoverable(): boolean {
    return this.isAnnounced && this.#standing?.queryInstance !== null;
  }

  /** What is wanted does not stand yet. */
  get isOnItsWay(): boolean {
    return this.#wanted !== this.#settled;
  }

  /** Moves towards what is wanted now; null: nothing stands. Resolves once it is reached. */
  async want(wanted: WantedSource | null): Promise<void> {
    this.#wanted = wanted;
    this.#settling ??= this.#settle();
    await this.#settling;
  }

  async #settle(): Promise<void> {
    // Not before `want()` has noted that this runs, even where there is nothing to do.
    await Promise.resolve();
    while (this.#wanted !== this.#settled) {
      const wanted = this.#wanted;
      if (this.#standing !== null && this.#standing.source !== wanted?.source) {
        await this.#withdraw(this.#standing);
      }
      if (wanted !== null) await this.#approach(wanted);
      this.#settled = wanted;
    }
    this.#settling = null;
  }

  async #approach(wanted: WantedSource): Promise<void> {
    this.#standing ??= await this.#prepare(wanted);
    const standing = this.#standing;
    if (wanted.isClaimed === standing.isClaimed) return;
    standing.isClaimed = wanted.isClaimed;
    if (wanted.isClaimed) {
      this.#deps.metrics.announcements++;
      await this.#deps.discovery.put(standing.claim);
    } else {
      await this.#deps.discovery.withdraw(standing.claim);
    }
  }

  async #prepare({ source, channel: transport }: WantedSource): Promise<Standing> {
    const { discovery, mark, recovery } = this.#deps;
    await this.#evictLeftovers(source);
    const channel = transport && channelRecord(source, mark, transport);
    if (channel !== null) await discovery.put(channel);
    const address = (await recovery?.open(source)) ?? null;
    const queryInstance = address && queryInstanceRecord(source, mark, address);
    if (queryInstance !== null) await discovery.put(queryInstance);
    const claim = sourceRecord(source, mark, address);
    return { source, channel, queryInstance, claim, isClaimed: false };
  }

  async #withdraw({ source, channel, queryInstance, claim, isClaimed }: Standing): Promise<void> {
    const { discovery, recovery } = this.#deps;
    if (isClaimed) await discovery.withdraw(claim);
    if (queryInstance !== null) await discovery.withdraw(queryInstance);
    await recovery?.close(source);
    if (channel !== null) await discovery.withdraw(channel);
    this.#standing = null;
  }

  /** Until they expire, a router would see two sources for the rank and follow neither. */
  async #evictLeftovers(source: SourceIdentity): Promise<void> {
    const { discovery, mark, metrics } = this.#deps;
    const { endpoint } = source;
    const places = [
      ['v1/event_sources', sourcePrefix(endpoint)],
      ['v1/instances', queryInstancePrefix(endpoint)],
      ['v1/event_channels', sourcePrefix(endpoint)],
    ] as const;
    for (const [bucket, prefix] of places) {
      for (const [key, value] of await discovery.list(bucket, prefix)) {
        if (!isOwnLeftover(value, source, mark)) continue;
        metrics.evictedRecords++;
        await discovery.evict({ bucket, key });
      }
    }
  }
}
