/**
 * MasterClient: the admin port of a Mooncake master.
 *
 * list    GET /get_all_keys: text, one key a line.
 * query   GET /batch_query_keys?keys=…: JSON {success, data: {KEY: {ok, values, disk_values,
 *         local_disk_values, nof_values}}}; `values` are memory replicas, the others disk.
 * status  GET /kv_events/status: JSON; builds of mid 2026 call the last field `skipped_unparsed_keys`.
 * Bounds  time and bytes of each answer.
 * Source  Mooncake Store 0.3.14.
 */
import { Agent } from 'node:http';
import { z } from 'zod';
import { HttpGetError, httpGet } from '../../connections/http-get.ts';
import { KeyList } from './key-list.ts';
import { type Master, MasterError, type PublisherStatus } from './master.ts';

const LIST_TIMEOUT_MS = 60_000;
const ANSWER_TIMEOUT_MS = 5000;
const MAX_LIST_BYTES = 256 << 20;
const MAX_ANSWER_BYTES = 64 << 20;

const replicas = z.array(z.unknown()).nullish();

// Its keys are object keys, whatever they spell: a record type would take some of them for its own.
const queryShape = z.object({ success: z.literal(true), data: z.custom<object>(isPlainObject) });

const objectShape = z.object({
  ok: z.boolean(),
  values: replicas,
  disk_values: replicas,
  local_disk_values: replicas,
  nof_values: replicas,
});

/** Whole, and no more than a number can tell apart. */
const count = z.int().nonnegative();

const statusShape = z.object({
  enabled: z.boolean(),
  published_batches: count,
  published_events: count,
  dropped_events: count,
  skipped_keyless_events: count.optional(),
  skipped_unparsed_keys: count.optional(),
});

export class MasterClient implements Master {
  readonly #url: string;
  readonly #stop = new AbortController();
  // Chunk follows chunk; an idle connection is closed before the master would do so.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 2000 });

  /** `url` without a trailing slash. */
  constructor(url: string) {
    this.#url = url;
  }

  stop(): void {
    this.#stop.abort();
    this.#agent.destroy();
  }

  async list(): Promise<KeyList> {
    return new KeyList(await this.#get('/get_all_keys', LIST_TIMEOUT_MS, MAX_LIST_BYTES));
  }

  async query(keys: readonly Uint8Array[]): Promise<readonly (readonly string[])[]> {
    const texts = keys.map((key) => Buffer.from(key).toString('utf8'));
    const path = `/batch_query_keys?keys=${texts.map(encodeURIComponent).join(',')}`;
    const { data } = await this.#json(path, queryShape);
    return texts.map((text) => mediaOf(Object.getOwnPropertyDescriptor(data, text)?.value));
  }

  async status(): Promise<PublisherStatus> {
    const status = await this.#json('/kv_events/status', statusShape);
    return {
      enabled: status.enabled,
      publishedBatches: status.published_batches,
      publishedEvents: status.published_events,
      droppedEvents: status.dropped_events,
      skippedKeylessEvents: status.skipped_keyless_events ?? status.skipped_unparsed_keys ?? 0,
    };
  }

  async #json<Value>(path: string, shape: z.ZodType<Value>): Promise<Value> {
    const body = await this.#get(path, ANSWER_TIMEOUT_MS, MAX_ANSWER_BYTES);
    const checked = shape.safeParse(parsed(body));
    if (checked.success) return checked.data;
    throw new MasterError('bad_answer', `${pathOnly(path)} answers in an unknown form`);
  }

  async #get(path: string, timeoutMs: number, maxBytes: number): Promise<Buffer> {
    const options = { timeoutMs, maxBytes, stop: this.#stop.signal };
    const agent = this.#url.startsWith('https:') ? null : this.#agent;
    try {
      return await httpGet(this.#url + path, { ...options, agent });
    } catch (error) {
      if (!(error instanceof HttpGetError)) throw error;
      throw new MasterError(error.fault, `${pathOnly(path)}: ${error.message}`);
    }
  }
}

function isPlainObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mediaOf(answer: unknown): readonly string[] {
  const object = objectShape.safeParse(answer);
  if (!object.success) throw new MasterError('bad_answer', 'a key is not answered');
  if (!object.data.ok) return [];
  const { values, disk_values, local_disk_values, nof_values } = object.data;
  const media: string[] = [];
  if (hasAny(values)) media.push('cpu');
  if ([disk_values, local_disk_values, nof_values].some(hasAny)) media.push('disk');
  return media;
}

function hasAny(list: readonly unknown[] | null | undefined): boolean {
  return list !== null && list !== undefined && list.length > 0;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Keys are not for logs. */
function pathOnly(path: string): string {
  return path.split('?', 1)[0] as string;
}
