/** Settings of what is done about batches that an engine's socket lost, and about its restarts. */
import type { ZmqAddress } from './addresses.ts';
import { choice, integer, zmqAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

const GAP_POLICIES = ['replay', 'clear', 'count'] as const;
export type GapPolicy = (typeof GAP_POLICIES)[number];

const RESTART_POLICIES = ['clear', 'keep'] as const;
export type RestartPolicy = (typeof RESTART_POLICIES)[number];

export interface ReplaySettings {
  /** Null: the engine has none. */
  readonly replayEndpoint: ZmqAddress | null;
  readonly onEngineGap: GapPolicy;
  readonly onEngineRestart: RestartPolicy;
  readonly replayHoldBatches: number;
  readonly replayHoldBytes: number;
  readonly replayIdleMs: number;
  readonly replayCooldownMs: number;
}

const NO_REPLAY = 'never asks for a replay';

export const replaySettings: SettingRows<ReplaySettings> = {
  replayEndpoint: {
    flag: '--replay-endpoint',
    environment: 'KVRELAY_REPLAY_ENDPOINT',
    kind: zmqAddress,
    fallback: null,
    strictLacks: NO_REPLAY,
    help: "Engine's replay socket of the first rank; engines add the absolute rank to its port too",
    remedy: "Give the engine's replay_endpoint, or leave it out where the engine has none",
  },
  onEngineGap: {
    flag: '--on-engine-gap',
    environment: 'KVRELAY_ON_ENGINE_GAP',
    kind: choice(...GAP_POLICIES),
    fallback: 'replay',
    strictLacks: 'only counts what is missing',
    help: 'Missing engine batches: replay them, clear the rank of what stays missing, or count them',
    remedy: 'Give replay unless a router must never believe in a block that is gone',
  },
  onEngineRestart: {
    flag: '--on-engine-restart',
    environment: 'KVRELAY_ON_ENGINE_RESTART',
    kind: choice(...RESTART_POLICIES),
    fallback: 'clear',
    strictLacks: 'takes no notice of restarts',
    help: 'Restart of the engine: clear its ranks, or keep what is known of them',
    remedy: 'Give clear: a restarted engine has an empty cache',
  },
  replayHoldBatches: {
    flag: '--replay-hold-batches',
    environment: 'KVRELAY_REPLAY_HOLD_BATCHES',
    kind: integer(1, 10_000_000, 'BATCHES'),
    fallback: '16384',
    strictLacks: NO_REPLAY,
    help: 'Live batches kept while a replay runs; further ones have to be replayed as well',
    remedy: 'Give what the engine sends within seconds',
  },
  replayHoldBytes: {
    flag: '--replay-hold-bytes',
    environment: 'KVRELAY_REPLAY_HOLD_BYTES',
    kind: integer(1024, 0x7fff_ffff, 'BYTES'),
    fallback: '67108864',
    strictLacks: NO_REPLAY,
    help: 'The same bound in bytes',
    remedy: 'Give the memory that a replay may take on each engine socket',
  },
  replayIdleMs: {
    flag: '--replay-idle-ms',
    environment: 'KVRELAY_REPLAY_IDLE_MS',
    kind: integer(50, 600_000, 'MS'),
    fallback: '1000',
    strictLacks: NO_REPLAY,
    help: 'Pause that ends an answer; three times as long for its first batch',
    remedy: 'Raise it where replays end as late in kvrelay_engine_replays_total',
  },
  replayCooldownMs: {
    flag: '--replay-cooldown-ms',
    environment: 'KVRELAY_REPLAY_COOLDOWN_MS',
    kind: integer(0, 3_600_000, 'MS'),
    fallback: '30000',
    strictLacks: NO_REPLAY,
    help: 'After three asks without an answer, how long nobody is asked and gaps count as lost',
    remedy: 'Give how soon an engine that does not answer is asked again',
  },
};
