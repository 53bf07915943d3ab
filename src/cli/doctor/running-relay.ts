/** A relay that runs already: what it holds is no obstacle, and its sources are our own. */
import { z } from 'zod';
import { connectableHttp, type HttpAddress } from '../../config/addresses.ts';
import { QueryError, RelayClient } from '../relay-client.ts';

export interface RunningRelay {
  readonly version: string;
  readonly state: string;
  readonly ranks: readonly {
    readonly dp_rank: number;
    readonly worker_id: string | null;
    readonly publisher_id: string;
    readonly plane_endpoint?: string | null | undefined;
    readonly engine: { readonly endpoint: string };
  }[];
  /** Stores that it follows. */
  readonly sources?:
    | readonly {
        readonly source: string;
        readonly last_message_age_ms?: number | null | undefined;
      }[]
    | undefined;
}

const shape: z.ZodType<RunningRelay> = z.looseObject({
  version: z.string(),
  state: z.string(),
  ranks: z.array(
    z.looseObject({
      dp_rank: z.int(),
      worker_id: z.string().nullable(),
      publisher_id: z.string(),
      plane_endpoint: z.string().nullish(),
      engine: z.looseObject({ endpoint: z.string() }),
    }),
  ),
  sources: z
    .array(z.looseObject({ source: z.string(), last_message_age_ms: z.number().nullish() }))
    .optional(),
});

const MAX_WAIT_MS = 2000;

/** Null where there is none at this address. */
export async function findRunningRelay(
  http: HttpAddress | null,
  ended: AbortSignal,
): Promise<RunningRelay | null> {
  if (http === null || http.port === 0) return null;
  const client = new RelayClient({ address: connectableHttp(http), timeoutMs: MAX_WAIT_MS, ended });
  try {
    return (await client.json({ path: '/api/status' }, shape)).value;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}
