/**
 * The lives of chunks: in L1 from the first write to the eviction and on to the next write, and at the
 * storage manager from one use to the next read.
 *
 * Sampled by the chunk's hash, so that all copies of a chunk are followed or none is.
 */
import type { ObjectKey } from '../../engines/lmcache/contracts.ts';
import { MAX_EVICT_REUSE_S } from '../../metrics/lmcache-histograms.ts';
import { type DeriverDeps, type Handlers, labelsOf } from './deriver.ts';
import { shortKey, shortLabel } from './short-key.ts';
import { Tracked } from './tracked.ts';

interface Life {
  readonly allocatedAt: number;
  lastUsedAt: number;
}

interface KeysOfTag {
  readonly timestamp: number;
  readonly metadata: { readonly keys?: readonly ObjectKey[]; readonly l1_tag?: string };
}

export function deriveL1Lifecycle({ series, options, counts }: DeriverDeps): Handlers {
  const drop = (): void => {
    counts.untracked++;
  };
  const lives = new Tracked<Life>(options.maxTracked, drop);
  const evicted = new Tracked<{ readonly at: number; readonly tag: string | undefined }>(
    options.maxTracked,
    drop,
  );

  const sweep = (now: number): void => {
    for (let { oldest } = evicted; oldest !== undefined; { oldest } = evicted) {
      const { at, tag } = oldest.value;
      if (now - at < MAX_EVICT_REUSE_S) return;
      evicted.take(oldest.key);
      series.observe('l1_chunk_evict_reuse_gap', MAX_EVICT_REUSE_S, labelsOf({ l1_tag: tag }));
    }
  };
  const onWrite = ({ timestamp: now, metadata: { keys = [], l1_tag } }: KeysOfTag): void => {
    const labels = labelsOf({ l1_tag });
    for (const key of keys) {
      const id = idOf(key, l1_tag);
      const gone = evicted.take(id);
      if (gone !== undefined) {
        const gap = Math.min(now - gone.at, MAX_EVICT_REUSE_S);
        series.observe('l1_chunk_evict_reuse_gap', gap, labels);
      }
      const life = lives.get(id);
      if (life !== undefined) series.observe('l1_chunk_reuse_gap', now - life.lastUsedAt, labels);
      if (life !== undefined || isSampled(key, options.sampleRate))
        lives.set(id, { allocatedAt: now, lastUsedAt: now });
    }
    sweep(now);
  };
  return {
    L1_READ_FINISHED: ({ timestamp: now, metadata: { keys = [], l1_tag } }) => {
      for (const key of keys) {
        const life = lives.get(idOf(key, l1_tag));
        if (life === undefined) continue;
        series.observe('l1_chunk_reuse_gap', now - life.lastUsedAt, labelsOf({ l1_tag }));
        life.lastUsedAt = now;
      }
    },
    L1_WRITE_FINISHED: onWrite,
    L1_WRITE_FINISHED_AND_READ_RESERVED: onWrite,
    L1_KEYS_EVICTED: ({ timestamp: now, metadata: { keys = [], l1_tag } }) => {
      const labels = labelsOf({ l1_tag });
      for (const key of keys) {
        const id = idOf(key, l1_tag);
        const life = lives.take(id);
        if (life === undefined) continue;
        series.observe('l1_chunk_lifetime', now - life.allocatedAt, labels);
        series.observe('l1_chunk_idle_before_evict', now - life.lastUsedAt, labels);
        evicted.set(id, { at: now, tag: l1_tag && shortLabel(l1_tag) });
      }
      sweep(now);
    },
  };
}

interface Use {
  readonly at: number;
  /** Number of the use among those of its salt. */
  readonly count: number;
}

/** A chunk is its salt and hash: the ranks of one chunk are one use. */
export function deriveReuse({ series, options, counts }: DeriverDeps): Handlers {
  const drop = (): void => {
    counts.untracked++;
  };
  const uses = new Tracked<Use>(options.maxTracked, drop);
  const usesBySalt = new Tracked<number>(options.maxTracked, drop);

  const take = (keys: readonly ObjectKey[], now: number, isRead: boolean): void => {
    const seen = new Set<string>();
    for (const key of keys) {
      const id = shortKey(`${hexOf(key.chunk_hash)}\0${key.cache_salt}`);
      if (seen.has(id)) continue;
      seen.add(id);
      const salt = shortKey(key.cache_salt);
      const count = (usesBySalt.get(salt) ?? 0) + 1;
      usesBySalt.set(salt, count);
      const last = uses.get(id);
      if (last === undefined && !isSampled(key, options.sampleRate)) continue;
      if (last !== undefined && isRead) {
        const labels = { cache_salt: key.cache_salt };
        series.observe('real_reuse_gap', now - last.at, labels);
        series.observe('real_reuse_gap_objects', count - last.count, labels);
      }
      uses.set(id, { at: now, count });
    }
  };
  return {
    SM_READ_PREFETCHED_FINISHED: ({ timestamp, metadata: { succeeded_keys = [] } }) =>
      take(succeeded_keys, timestamp, true),
    SM_WRITE_FINISHED: ({ timestamp, metadata: { succeeded_keys = [] } }) =>
      take(succeeded_keys, timestamp, false),
  };
}

const SAMPLE_BYTES = 4;

function isSampled({ chunk_hash }: ObjectKey, rate: number): boolean {
  let value = 0;
  for (let index = 0; index < SAMPLE_BYTES; index++) value = value * 256 + (chunk_hash[index] ?? 0);
  return value < rate * 256 ** SAMPLE_BYTES;
}

function idOf(key: ObjectKey, tag: string | undefined): string {
  const { chunk_hash, model_name, kv_rank, object_group_id, cache_salt } = key;
  const parts = [tag ?? '', hexOf(chunk_hash), model_name, kv_rank, object_group_id, cache_salt];
  return shortKey(parts.join('\0'));
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
