/** Settings of the stores beside the engine, and of the stream that tells what they hold. */
import { STORAGE_TIERS, type StorageTier } from '../protocol/storage-tier.ts';
import type { ZmqAddress } from './addresses.ts';
import { choice, httpBase, integer, nonEmptyText, zmqAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

export interface StoreSettings {
  /** Null: there is no Mooncake Store. */
  readonly mooncakeEndpoint: ZmqAddress | null;
  /** URL of the admin port, without a trailing slash; null: nobody can be asked. */
  readonly mooncakeMaster: string | null;
  /** A preset's name or a pattern; null: keys are not looked into. */
  readonly mooncakeKeyPattern: string | null;
  readonly mooncakeTier: StorageTier;
  /** 0: only where something calls for it. */
  readonly mooncakeReconcileSeconds: number;
  readonly mooncakeMaxObjects: number;
  readonly mooncakeHoldBytes: number;
  readonly objectBuffer: number;
  readonly objectBufferBytes: number;
}

const LOWER_TIERS = STORAGE_TIERS.filter((tier) => tier !== 'device');

export const storeSettings: SettingRows<StoreSettings> = {
  mooncakeEndpoint: {
    flag: '--mooncake-endpoint',
    environment: 'KVRELAY_MOONCAKE_ENDPOINT',
    kind: zmqAddress,
    fallback: null,
    help: 'Event socket of a Mooncake Store: what it holds is followed and published as kv-objects',
    remedy: 'Give the address of --kv_events_bind_endpoint of the master',
  },
  mooncakeMaster: {
    flag: '--mooncake-master',
    environment: 'KVRELAY_MOONCAKE_MASTER',
    kind: httpBase,
    fallback: null,
    help: "Admin port of the store's master, asked for what no event told; without it a loss gives up all",
    remedy: 'Give the address of the admin port, such as http://127.0.0.1:9003',
  },
  mooncakeKeyPattern: {
    flag: '--mooncake-key-pattern',
    environment: 'KVRELAY_MOONCAKE_KEY_PATTERN',
    kind: nonEmptyText('PRESET|PATTERN'),
    fallback: null,
    strictLacks: 'publishes the events of the engine alone',
    help:
      'Which block an object holds: vllm, vllm-ascend, sglang, lmcache, or a pattern with a group ' +
      '(?<hash>…). Blocks that the engine has shown are then placed in --mooncake-tier',
    remedy: 'docs/mooncake-keys.md lists the presets and what a pattern may hold',
  },
  mooncakeTier: {
    flag: '--mooncake-tier',
    environment: 'KVRELAY_MOONCAKE_TIER',
    kind: choice(...LOWER_TIERS),
    fallback: 'external',
    help: 'Storage tier in which routers see blocks that the store holds',
    remedy: 'Give the tier that routers should count a block of the store as',
  },
  mooncakeReconcileSeconds: {
    flag: '--mooncake-reconcile-seconds',
    environment: 'KVRELAY_MOONCAKE_RECONCILE_SECONDS',
    kind: integer(0, 86_400, 'S'),
    fallback: '300',
    help:
      'Time between slow comparisons with the master, which find objects that went without an event; ' +
      '0: only at the start, after a loss and behind a new link',
    remedy: 'Give the seconds for which an object that is gone may still be shown',
  },
  mooncakeMaxObjects: {
    flag: '--mooncake-max-objects',
    environment: 'KVRELAY_MOONCAKE_MAX_OBJECTS',
    kind: integer(1, 100_000_000, 'OBJECTS'),
    fallback: '4000000',
    help: 'Objects of stores that are followed; what is stored above that is counted and not shown',
    remedy: 'Give more than the store can hold',
  },
  mooncakeHoldBytes: {
    flag: '--mooncake-hold-bytes',
    environment: 'KVRELAY_MOONCAKE_HOLD_BYTES',
    kind: integer(65_536, 0x7fff_ffff, 'BYTES'),
    fallback: '67108864',
    help: 'Messages that wait while an answer of the master is on its way; above that it is given up',
    remedy: 'Give the bytes that the store sends while its master answers',
  },
  objectBuffer: {
    flag: '--object-buffer',
    environment: 'KVRELAY_OBJECT_BUFFER',
    kind: integer(1, 10_000_000, 'EVENTS'),
    fallback: '65536',
    help: 'Newest object events kept for consumers that missed some',
    remedy: 'Give the number of events that a consumer may be behind',
  },
  objectBufferBytes: {
    flag: '--object-buffer-bytes',
    environment: 'KVRELAY_OBJECT_BUFFER_BYTES',
    kind: integer(65_536, 0x7fff_ffff, 'BYTES'),
    fallback: '33554432',
    help: 'Bytes of these events, whichever bound is hit first',
    remedy: 'Give the memory that the events may take',
  },
};
