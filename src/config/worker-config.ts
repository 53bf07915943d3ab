/** WorkerConfig: what one worker is told, checked and complete. Frozen, lists included. */
import type { SettingValues } from './settings-table.ts';

export interface WorkerConfig
  extends Omit<
    SettingValues,
    | 'engineEndpoint'
    | 'replayEndpoint'
    | 'planeEndpoint'
    | 'workerId'
    | 'lmcacheBridge'
    | 'lmcacheReplay'
    | 'lmcacheStream'
    | 'mooncakeEndpoint'
  > {
  /** Of the first rank, ready to connect to or bind; see `rankEndpoint` for the others. */
  readonly engineEndpoint: string;
  /** Of the first rank, as the one above; null where the engine has none. */
  readonly replayEndpoint: string | null;
  /** Bind address of the first rank; port 0 asks for a free one. */
  readonly planeEndpoint: string;
  /** Ready to connect to; null where there is no Mooncake Store. */
  readonly mooncakeEndpoint: string | null;
  /** Ready to connect to; null where there is no bridge of LMCache. */
  readonly lmcacheBridge: string | null;
  /** Null where nobody is asked for what was missed. */
  readonly lmcacheReplay: string | null;
  /** Ready to connect to; null where LMCache's events are not followed. */
  readonly lmcacheStream: string | null;
  /** u64; null: the worker that discovery shows. */
  readonly workerId: bigint | null;
  /** What was changed or left unused, one line each, for the log. */
  readonly warnings: readonly string[];
}
