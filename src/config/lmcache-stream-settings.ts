/** Settings of what LMCache's server holds, and where routers see it. */
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';
import type { ZmqAddress } from './addresses.ts';
import { choice, integer, nameList, nonEmptyText, zmqAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

export interface LmcacheStreamSettings {
  /** Null: there is no such server. */
  readonly lmcacheStream: ZmqAddress | null;
  /** The worker's model; null: not told. */
  readonly lmcacheModel: string | null;
  /** Others that are followed beside it; null: none. */
  readonly lmcacheStreamModels: readonly string[] | null;
  /** Null: one at random. */
  readonly lmcacheStreamInstance: number | null;
  readonly lmcacheStreamMaxEvents: number;
  /** `off`: routers are not told of chunks there. */
  readonly lmcacheL1Tier: StorageTier | 'off';
  readonly lmcacheL2Tier: StorageTier | 'off';
}

/** Beside the worker's own. */
const MAX_OTHER_MODELS = 7;

const LOWER_TIERS = STORAGE_TIERS.filter((tier) => tier !== 'device');

export const lmcacheStreamSettings: SettingRows<LmcacheStreamSettings> = {
  lmcacheStream: {
    flag: '--lmcache-stream',
    environment: 'KVRELAY_LMCACHE_STREAM',
    kind: zmqAddress,
    fallback: null,
    help:
      "Request port of LMCache's MP server, 0.5.6 or newer: what its L1 holds is followed, published as " +
      'kv-objects, and placed at the routers',
    remedy: 'Give host and port of the MP server, such as tcp://127.0.0.1:5555',
  },
  lmcacheModel: {
    flag: '--lmcache-model',
    environment: 'KVRELAY_LMCACHE_MODEL',
    kind: nonEmptyText('NAME'),
    fallback: null,
    help: "The worker's model as LMCache's keys name it: its chunks are placed, those of others are not",
    remedy: 'Give the model name that the engine was started with',
  },
  lmcacheStreamModels: {
    flag: '--lmcache-stream-models',
    environment: 'KVRELAY_LMCACHE_STREAM_MODELS',
    kind: nameList(MAX_OTHER_MODELS),
    fallback: null,
    help: 'Further models of the same server, followed as objects alone',
    remedy: 'Give the names of other models that share the server',
  },
  lmcacheStreamInstance: {
    flag: '--lmcache-stream-instance',
    environment: 'KVRELAY_LMCACHE_STREAM_INSTANCE',
    kind: integer(0, 2 ** 48, 'ID'),
    fallback: null,
    help: 'Instance id of the subscription, one more for each further model; at random unless given',
    remedy: 'Give one that no engine and no other subscriber of this server has',
  },
  lmcacheStreamMaxEvents: {
    flag: '--lmcache-stream-max-events',
    environment: 'KVRELAY_LMCACHE_STREAM_MAX_EVENTS',
    kind: integer(1, 1024, 'EVENTS'),
    fallback: '128',
    help: 'Records of a batch at most',
    remedy: 'Give fewer where chunks are large: a batch is read in one turn',
  },
  lmcacheL1Tier: {
    flag: '--lmcache-l1-tier',
    environment: 'KVRELAY_LMCACHE_L1_TIER',
    kind: choice(...LOWER_TIERS, 'off'),
    fallback: 'host_pinned',
    strictLacks: 'publishes the events of the engine alone',
    help: "Storage tier in which routers see chunks in the memory of LMCache's server; off: not at all",
    remedy: 'Give the tier that routers should count these blocks as',
  },
  lmcacheL2Tier: {
    flag: '--lmcache-l2-tier',
    environment: 'KVRELAY_LMCACHE_L2_TIER',
    kind: choice(...LOWER_TIERS, 'off'),
    fallback: 'disk',
    strictLacks: 'publishes the events of the engine alone',
    help: 'The same for chunks below that memory',
    remedy: 'Give the tier that routers should count these blocks as',
  },
};
