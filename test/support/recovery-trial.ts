/** A recovery service of one source over an index of the test, with a router that asks it. */
import { onTestFinished } from 'vitest';
import { RecoveryCounts } from '../../src/metrics/recovery-counts.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { QueryService, type QueryServiceLimits } from '../../src/router/recovery/query-service.ts';
import {
  RequestServer,
  type RequestServerLimits,
} from '../../src/router/recovery/request-server.ts';
import {
  DEFAULT_STREAM_LIMITS,
  type ResponseStreamLimits,
} from '../../src/router/recovery/response-stream.ts';
import { FakeIndex, type FakeIndexOptions } from './fake-index.ts';
import { FakeRouter } from './fake-router.ts';

export const PATH = '4f7921ac106653e6/demo/backend/worker_kv_query_source_abc123';
export const WORKER = 0x4f79_21ac_1066_53e6n;

export interface RecoveryTrial {
  readonly port: number;
  readonly index: FakeIndex;
  readonly router: FakeRouter;
  readonly service: QueryService;
  readonly counts: RecoveryCounts;
  readonly metrics: RelayMetrics;
  /** `begin` or `repair` and `end` of the hold, and what the index knew then. */
  readonly holds: string[];
  readonly errors: unknown[];
}

export interface TrialOptions {
  readonly index?: Partial<FakeIndexOptions>;
  readonly server?: Partial<RequestServerLimits>;
  readonly service?: Partial<Omit<QueryServiceLimits, 'stream'>>;
  readonly stream?: Partial<ResponseStreamLimits>;
}

export async function startRecovery(options: TrialOptions = {}): Promise<RecoveryTrial> {
  const [counts, metrics, errors, holds] = [new RecoveryCounts(), new RelayMetrics(), [], []] as [
    RecoveryCounts,
    RelayMetrics,
    unknown[],
    string[],
  ];
  const index = new FakeIndex({ workerId: WORKER, ...options.index });
  const onError = (error: unknown): void => void errors.push(error);
  const service = new QueryService(counts, onError, {
    ...options.service,
    stream: { ...DEFAULT_STREAM_LIMITS, ...options.stream },
  });
  const hold = {
    isHolding: false,
    idle: async (): Promise<void> => undefined,
    begin: (isRepair: boolean) => {
      holds.push(`${isRepair ? 'repair' : 'begin'} ${index.lastEventId}`);
      return () => void holds.push('end');
    },
  };
  service.add(PATH, { workerId: WORKER, dpRank: 0, index, hold, metrics });
  const server = new RequestServer({
    host: '127.0.0.1',
    port: 0,
    accept: (frame) => service.accept(frame),
    counts,
    onError,
    ...(options.server && { limits: options.server }),
  });
  const port = await server.start();
  const router = await FakeRouter.start();
  onTestFinished(async () => {
    await server.stop();
    service.stop();
    await router.close();
  });
  return { port, index, router, service, counts, metrics, holds, errors };
}
