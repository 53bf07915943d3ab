/** Settings of what is made of LMCache's bus. */
import type { ZmqAddress } from './addresses.ts';
import { integer, zmqAddress } from './kinds.ts';
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
};
