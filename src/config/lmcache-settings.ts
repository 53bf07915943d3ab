/** Settings of what is made of LMCache's bus, and of what its servers tell their coordinator. */
import type { HttpAddress, ZmqAddress } from './addresses.ts';
import { httpAddress, httpBase, integer, nonEmptyText, zmqAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

export interface LmcacheSettings {
  /** Null: there is no bridge. */
  readonly lmcacheBridge: ZmqAddress | null;
  /** Null: nobody is asked for what was missed. */
  readonly lmcacheReplay: ZmqAddress | null;
  readonly lmcacheSamplePercent: number;
  readonly lmcacheLabelValues: number;
  readonly lmcacheMaxTracked: number;
  readonly lmcacheMaxPending: number;
  readonly lmcachePairTimeoutS: number;
  readonly lmcacheRequestTimeoutS: number;
  /** Null: LMCache's servers are not listened to. */
  readonly lmcacheCoordinatorListen: HttpAddress | null;
  /** URL of the coordinator behind, without a trailing slash; null: there is none. */
  readonly lmcacheCoordinatorForward: string | null;
  readonly lmcacheCoordinatorMaxBytes: number;
  readonly lmcacheMaxKeys: number;
  readonly lmcacheInstanceTimeoutS: number;
  /** Id of the MP server that the worker uses; null: no chunk is within its reach. */
  readonly lmcacheInstance: string | null;
}

export const lmcacheSettings: SettingRows<LmcacheSettings> = {
  lmcacheBridge: {
    flag: '--lmcache-bridge',
    environment: 'KVRELAY_LMCACHE_BRIDGE',
    kind: zmqAddress,
    fallback: null,
    help: "Event socket of LMCache's bridge: its bus is checked, and shown as LMCache's own metrics",
    remedy: 'Give KVRELAY_BRIDGE_ENDPOINT of the bridge, such as tcp://127.0.0.1:5571',
  },
  lmcacheReplay: {
    flag: '--lmcache-replay',
    environment: 'KVRELAY_LMCACHE_REPLAY',
    kind: zmqAddress,
    fallback: null,
    help: "Replay socket of LMCache's bridge",
    remedy: 'Give KVRELAY_BRIDGE_REPLAY_ENDPOINT of the bridge, such as tcp://127.0.0.1:5572',
  },
  lmcacheSamplePercent: {
    flag: '--lmcache-sample-percent',
    environment: 'KVRELAY_LMCACHE_SAMPLE_PERCENT',
    kind: integer(1, 100, 'PERCENT'),
    fallback: '1',
    help: 'Share of chunks and GPU blocks whose lives are followed for the histograms',
    remedy: 'Give what --metrics-sample-rate of LMCache is, in percent',
  },
  lmcacheLabelValues: {
    flag: '--lmcache-label-values',
    environment: 'KVRELAY_LMCACHE_LABEL_VALUES',
    kind: integer(1, 100_000, 'VALUES'),
    fallback: '200',
    help: 'Values of each label, salts and models among them; further ones share kvrelay_overflow',
    remedy: 'Give more than there are tenants',
  },
  lmcacheMaxTracked: {
    flag: '--lmcache-max-tracked',
    environment: 'KVRELAY_LMCACHE_MAX_TRACKED',
    kind: integer(1, 100_000_000, 'ENTRIES'),
    fallback: '100000',
    help: 'Chunks, and as many GPU blocks, whose lives are followed at a time',
    remedy: 'Give more than the sampled share of what LMCache can hold',
  },
  lmcacheMaxPending: {
    flag: '--lmcache-max-pending',
    environment: 'KVRELAY_LMCACHE_MAX_PENDING',
    kind: integer(1, 10_000_000, 'ENTRIES'),
    fallback: '65536',
    help: 'Requests, and starts of each kind, that wait for their end',
    remedy: 'Give more than can be under way at a time',
  },
  lmcachePairTimeoutS: {
    flag: '--lmcache-pair-timeout-s',
    environment: 'KVRELAY_LMCACHE_PAIR_TIMEOUT_S',
    kind: integer(1, 1_000_000, 'S'),
    fallback: '3600',
    help: 'How long a start waits for its end',
    remedy: 'Give longer than the slowest transfer takes',
  },
  lmcacheRequestTimeoutS: {
    flag: '--lmcache-request-timeout-s',
    environment: 'KVRELAY_LMCACHE_REQUEST_TIMEOUT_S',
    kind: integer(1, 1_000_000, 'S'),
    fallback: '600',
    help: 'How long a request without news is in flight',
    remedy: 'Give longer than the longest pause within a request',
  },
  lmcacheCoordinatorListen: {
    flag: '--lmcache-coordinator-listen',
    environment: 'KVRELAY_LMCACHE_COORDINATOR_LISTEN',
    kind: httpAddress,
    fallback: null,
    help:
      "Takes the place of a coordinator of LMCache's servers: what they report is followed and published as " +
      'kv-objects; anybody who reaches the address can report',
    remedy: 'Give the address that --coordinator-url of LMCache names, such as 127.0.0.1:9300',
  },
  lmcacheCoordinatorForward: {
    flag: '--lmcache-coordinator-forward',
    environment: 'KVRELAY_LMCACHE_COORDINATOR_FORWARD',
    kind: httpBase,
    fallback: null,
    help: 'The coordinator behind: every request is handed on to it, and its answer back',
    remedy: 'Give the address of lmcache coordinator, such as http://127.0.0.1:9301',
  },
  lmcacheCoordinatorMaxBytes: {
    flag: '--lmcache-coordinator-max-bytes',
    environment: 'KVRELAY_LMCACHE_COORDINATOR_MAX_BYTES',
    kind: integer(65_536, 1 << 30, 'BYTES'),
    fallback: '16777216',
    help: 'Largest body of a request that is read; a larger one is counted, and handed on unread',
    remedy: 'Give more than one flush of an LMCache server has',
  },
  lmcacheMaxKeys: {
    flag: '--lmcache-max-keys',
    environment: 'KVRELAY_LMCACHE_MAX_KEYS',
    kind: integer(1, 100_000_000, 'KEYS'),
    fallback: '8000000',
    help: 'Keys of LMCache (chunk, rank, object group) that are followed; what is stored above that is counted',
    remedy: 'Give more than all tiers can hold',
  },
  lmcacheInstance: {
    flag: '--lmcache-instance',
    environment: 'KVRELAY_LMCACHE_INSTANCE',
    kind: nonEmptyText('ID'),
    fallback: null,
    strictLacks: 'publishes the events of the engine alone',
    help:
      "Id of the LMCache server that this worker's engine uses: what it holds, and the pools it mounts, are " +
      'placed at the routers',
    remedy: "Give the server's --instance-id",
  },
  lmcacheInstanceTimeoutS: {
    flag: '--lmcache-instance-timeout-s',
    environment: 'KVRELAY_LMCACHE_INSTANCE_TIMEOUT_S',
    kind: integer(1, 86_400, 'S'),
    fallback: '30',
    help: 'Silence after which a registered LMCache server has left, with what it holds itself',
    remedy: 'Give what --instance-timeout of a coordinator would be: several heartbeats',
  },
};
