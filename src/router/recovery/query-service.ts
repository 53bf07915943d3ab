/**
 * QueryService: answers routers' queries, whichever request plane brings them.
 *
 * Accepts  at once or not at all: what cannot be answered is refused in the acknowledgement.
 * Answers  over a stream of its own to the router. The answer is taken as late as possible, when the
 *          stream stands and all slow work is done; from then on the rank's output is held.
 * Bounds   answers at a time, dumps among them, each in time; a snapshot that is not possible now is told
 *          as TreeDumpFailed, after which a router asks again without losing its place.
 * Source   ai-dynamo/dynamo 1.6.1, WorkerKvQueryEngine and its request plane.
 */
import type { ConnectionOptions } from 'node:tls';
import type { RecoveryCounts, RefusalReason } from '../../metrics/recovery-counts.ts';
import type { RecoveryAnswer, RelayMetrics } from '../../metrics/relay-metrics.ts';
import type { RecoveryIndex } from '../../protocol/recovery.ts';
import { type Answer, encodeAnswer } from './answer.ts';
import { JsonEvents } from './json-events.ts';
import { Permits } from './permits.ts';
import { type Query, RequestError, type RouterRequest, readRequest } from './query.ts';
import type { RequestFrame } from './request-frames.ts';
import {
  DEFAULT_STREAM_LIMITS,
  ResponseStream,
  type ResponseStreamLimits,
  StreamError,
} from './response-stream.ts';
import { type SharedWork, Snapshot } from './snapshot.ts';

/** What is told of an answer under way: its rank's output must not run far ahead of it. */
export interface OutputHold {
  /** Output waits for answers that are on their way. */
  readonly isHolding: boolean;
  /** Resolves once none does; soon, whatever becomes of the answers. */
  idle(): Promise<void>;
  /**
   * From the moment at which the answer's last event id is fixed; `isRepair` where the router asks for what
   * it missed. What it returns is called once the router has the answer, with the time it takes to apply
   * it, or 0 where it will never have it.
   */
  begin(isRepair: boolean): (applyMs: number) => void;
}

/** One source of events, as it was announced. */
export interface RecoverySource {
  /** u64. */
  readonly workerId: bigint;
  readonly dpRank: number;
  readonly index: RecoveryIndex;
  readonly hold: OutputHold;
  readonly metrics: RelayMetrics;
}

export interface QueryServiceLimits {
  readonly maxAnswers: number;
  readonly maxDumps: number;
  /** For a dump's turn and its making. */
  readonly snapshotTimeoutMs: number;
  readonly stream: ResponseStreamLimits;
  /** Of the connections to routers; null: none. */
  readonly tls: ConnectionOptions | null;
}

const DEFAULT_LIMITS: QueryServiceLimits = {
  maxAnswers: 512,
  maxDumps: 8,
  snapshotTimeoutMs: 20_000,
  stream: DEFAULT_STREAM_LIMITS,
  tls: null,
};

/** Twice what a stock router was seen to need, in either codec, and a while for one that is busy. */
const APPLY_MS_PER_MIB = 50;
const MIN_APPLY_MS = 100;

const MAX_TRIES = 8;

export class QueryService {
  readonly #counts: RecoveryCounts;
  readonly #onError: (error: unknown) => void;
  readonly #limits: QueryServiceLimits;
  readonly #shared: SharedWork;
  readonly #sources = new Map<string, RecoverySource>();
  readonly #streams = new Set<ResponseStream>();

  /** `onError` is told what a source's index throws; such a query is answered all the same. */
  constructor(
    counts: RecoveryCounts,
    onError: (error: unknown) => void,
    limits: Partial<QueryServiceLimits> = {},
  ) {
    this.#counts = counts;
    this.#onError = onError;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#shared = { dumps: new Permits(this.#limits.maxDumps), json: new JsonEvents() };
  }

  /** Serves `source` at `path`: a path of the TCP request plane, or a NATS subject. */
  add(path: string, source: RecoverySource): void {
    this.#sources.set(path, source);
  }

  remove(path: string): void {
    this.#sources.delete(path);
  }

  /** The text of the acknowledgement; empty where an answer follows. */
  accept({ path, payload }: RequestFrame): string {
    const source = this.#sources.get(path);
    if (source === undefined) return this.#refuse('unknown_path', 'nothing is served at this path');
    if (this.#streams.size >= this.#limits.maxAnswers) {
      return this.#refuse('overloaded', 'too many queries at a time');
    }
    try {
      void this.#serve(readRequest(payload), source);
      return '';
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return this.#refuse(error.reason, error.message);
    }
  }

  /** Ends what is under way; routers then ask again, elsewhere or later. */
  stop(): void {
    this.#sources.clear();
    for (const stream of this.#streams) stream.destroy();
  }

  /**
   * Until the answer can be taken. One that is fixed while output waits for others would make it wait on:
   * many that come one by one would hold it to the limit.
   */
  async #prepare(snapshot: Snapshot, hold: OutputHold): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      await snapshot.ready(this.#limits.snapshotTimeoutMs, this.#onError);
      if (!hold.isHolding) return;
      await hold.idle();
    }
  }

  #refuse(reason: RefusalReason, why: string): string {
    this.#counts.refusedRequests[reason]++;
    return `Server ${reason === 'overloaded' ? 'overloaded' : 'unavailable'}: ${why}`;
  }

  async #serve({ callBack, codec, query }: RouterRequest, source: RecoverySource): Promise<void> {
    const stream = new ResponseStream(callBack, this.#limits.stream, this.#limits.tls);
    this.#streams.add(stream);
    this.#counts.answersInFlight = this.#streams.size;
    let endHold: ((applyMs: number) => void) | null = null;
    let applyMs = 0;
    const snapshot = new Snapshot(query, codec, source.index, this.#shared);
    try {
      await stream.opened();
      const unserved = unservedQuery(query, source);
      if (unserved === null) {
        await this.#prepare(snapshot, source.hold);
        // The router may have gone meanwhile: nothing is held for it then.
        await stream.opened();
      }
      const answer = unserved ?? snapshot.take();
      if (hasEvents(answer)) endHold = source.hold.begin(query.startEventId !== null);
      source.metrics.recoveryQueries[answerLabel(answer)]++;
      const pieces = encodeAnswer(answer, codec, await snapshot.chunksOf(answer));
      await stream.answer(pieces, codec);
      await stream.closed();
      const answerBytes = pieces.reduce((sum, { length }) => sum + length, 0);
      applyMs = Math.max(MIN_APPLY_MS, (answerBytes / (1 << 20)) * APPLY_MS_PER_MIB);
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      this.#counts.failedAnswers[error.reason]++;
    } finally {
      endHold?.(applyMs);
      snapshot.release();
      stream.destroy();
      this.#streams.delete(stream);
      this.#counts.answersInFlight = this.#streams.size;
    }
  }
}

/** What is told without asking the index; the texts are stock's. */
function unservedQuery(query: Query, { workerId, dpRank }: RecoverySource): Answer | null {
  const { kind, startEventId, endEventId } = query;
  if (kind === 'status') return refusal('KV state-agent status is not supported by this endpoint');
  if (kind === 'state_agent_recovery') {
    return refusal('state-agent recovery is not supported by this endpoint');
  }
  if (query.workerId !== workerId) return mismatch('worker_id', query.workerId, workerId);
  if (query.dpRank !== dpRank) return mismatch('dp_rank', query.dpRank, dpRank);
  if (startEventId === null || endEventId === null || endEventId >= startEventId) return null;
  return { kind: 'invalid_range', startId: startEventId, endId: endEventId };
}

function mismatch(field: string, asked: bigint | number, served: bigint | number): Answer {
  return refusal(
    `WorkerKvQueryEngine::generate ${field} mismatch: request.${field}=${asked} this.${field}=${served}`,
  );
}

function refusal(message: string): Answer {
  return { kind: 'error', message };
}

/** Whether what a router applies next depends on where the answer ends. */
function hasEvents({ kind }: Answer): boolean {
  return kind === 'events' || kind === 'tree_dump';
}

function answerLabel({ kind }: Answer): RecoveryAnswer {
  return kind === 'tree_dump_failed' ? 'error' : kind;
}
