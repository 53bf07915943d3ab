/**
 * LoadAnnouncer: the channel record by which consumers of worker load find the relay's, as a stock worker
 * writes it: a record of its own topic, and no source beside it.
 *
 * Stands   while there is a worker; what an earlier life of this relay left behind goes first.
 * Never    throws: a backend that cannot be reached keeps what was put for later.
 * Source   ai-dynamo/dynamo 1.6.1, WorkerMetricsPublisher on file discovery.
 */
import { channelPrefix, type KvEndpoint } from '../../protocol/discovery-keys.ts';
import {
  type ChannelTransport,
  channelRecord,
  type DiscoveryRecord,
  isOwnLeftover,
  type SourceIdentity,
} from '../../protocol/discovery-records.ts';
import { KV_METRICS_TOPIC } from '../../protocol/load-event.ts';
import type { Discovery } from '../discovery/discovery.ts';

/** The worker's load, as discovery needs it. */
export interface PresentLoad {
  /** The first rank: one publisher tells the load of all. */
  readonly dpRank: number;
  readonly engineEndpoint: string;
  readonly publisherId: number;
  /** Null where the plane needs no channel record. */
  readonly channel: ChannelTransport | null;
}

export interface LoadAnnouncerDeps {
  readonly load: PresentLoad;
  readonly discovery: Discovery;
  readonly endpoint: KvEndpoint;
  readonly host: string;
}

export class LoadAnnouncer {
  readonly #deps: LoadAnnouncerDeps;
  #workerId: bigint | null = null;
  #standing: DiscoveryRecord | null = null;
  #settling: Promise<void> = Promise.resolve();

  constructor(deps: LoadAnnouncerDeps) {
    this.#deps = deps;
  }

  /** Whose load it is; null: nobody's, and nothing stands. Resolves once that is so. */
  async serve(workerId: bigint | null): Promise<void> {
    if (workerId !== this.#workerId) {
      this.#workerId = workerId;
      this.renew();
    }
    await this.#settling;
  }

  /** Writes the record anew, where there is one at all. */
  renew(): void {
    this.#settling = this.#settling.then(() => this.#settle());
  }

  async #settle(): Promise<void> {
    const { load, discovery, endpoint, host } = this.#deps;
    if (this.#standing !== null) await discovery.withdraw(this.#standing);
    this.#standing = null;
    const workerId = this.#workerId;
    const { dpRank, publisherId, engineEndpoint, channel } = load;
    if (workerId === null || channel === null) return;
    const source: SourceIdentity = { endpoint, workerId, dpRank, publisherId };
    const mark = { host, engineEndpoint };
    const prefix = channelPrefix(endpoint, KV_METRICS_TOPIC);
    for (const [key, value] of await discovery.list('v1/event_channels', prefix)) {
      if (!isOwnLeftover(value, source, mark)) continue;
      await discovery.evict({ bucket: 'v1/event_channels', key });
    }
    this.#standing = channelRecord(source, mark, channel, KV_METRICS_TOPIC);
    await discovery.put(this.#standing);
  }
}
