/** What every probe of `kvrelay doctor` gets. */
import type { WorkerConfig } from '../../config/worker-config.ts';
import type { RunningRelay } from './running-relay.ts';

export interface ProbeContext {
  readonly config: WorkerConfig;
  /** False where there is only a stand-in for it. */
  readonly isBlockSizeGiven: boolean;
  /** False where each start draws another one, or discovery finds it. */
  readonly isWorkerIdGiven: boolean;
  /** Aborted when the time is up, or a signal has come: what is known by then is told. */
  readonly ended: AbortSignal;
  /** A relay that runs already at the same HTTP address; null where there is none. */
  readonly relay: RunningRelay | null;
}

/** Resolves after `ms`, or sooner once `ended` is aborted. */
export async function pause(ms: number, ended: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      ended.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (ended.aborted) end();
    else ended.addEventListener('abort', end);
  });
}

/** `promise`, or null where `ended` comes first. */
export async function orEnd<Value>(
  promise: Promise<Value>,
  ended: AbortSignal,
): Promise<Value | null> {
  if (ended.aborted) return null;
  let end: () => void = () => undefined;
  const atEnd = new Promise<null>((resolve) => {
    end = (): void => resolve(null);
    ended.addEventListener('abort', end);
  });
  try {
    return await Promise.race([promise, atEnd]);
  } finally {
    ended.removeEventListener('abort', end);
  }
}
