/**
 * The lives of GPU blocks, as vLLM's allocations show them: a block whose tokens are others now has been
 * evicted in between, one whose requests have all ended is released, and used again by the next one.
 *
 * Only new blocks are reported, so that a re-use of a prefix is not seen, nor the moment of an eviction.
 */
import type { BlockRecord, Int } from '../../engines/lmcache/contracts.ts';
import { type DeriverDeps, type Handlers, labelsOf } from './deriver.ts';
import { shortKey, shortLabel } from './short-key.ts';
import { Tracked } from './tracked.ts';

/** The last re-uses, whose gaps an eviction tells. */
const MAX_USES = 4;
/** Owners of blocks, by what is tracked; above it the oldest request goes. */
const OWNED_PER_TRACKED = 4;
/** Spreads block ids over 32 bits. */
const SPREAD = 2_654_435_761;

interface Block {
  readonly model: string;
  readonly instance: string;
  readonly tokens: string;
  readonly allocatedAt: number;
  readonly owners: Set<string>;
  lastUsedAt: number;
  readonly uses: number[];
}

export function deriveBlocks(deps: DeriverDeps): Handlers {
  const blocks = new Blocks(deps);
  return {
    MP_VLLM_BLOCK_ALLOCATION: ({ timestamp, metadata }) => {
      const { instance_id = 0, model_name = '', records = [] } = metadata;
      for (const record of records)
        blocks.allocate(String(instance_id), shortLabel(model_name), record, timestamp);
    },
    MP_VLLM_END_SESSION: ({ metadata: { request_id = '' } }) => blocks.release(request_id),
  };
}

class Blocks {
  readonly #deps: DeriverDeps;
  readonly #blocks: Tracked<Block>;
  readonly #blocksOfRequest: Tracked<Set<string>>;
  /** Owners of all blocks. */
  #owned = 0;

  constructor(deps: DeriverDeps) {
    const { options, counts } = deps;
    this.#deps = deps;
    // Whoever goes, the other side forgets it.
    this.#blocks = new Tracked(options.maxTracked, ({ owners }, key) => {
      counts.untracked++;
      this.#disown(owners, key);
    });
    this.#blocksOfRequest = new Tracked(options.maxTracked, (keys, request) => {
      counts.untracked++;
      this.#leave(keys, request);
    });
  }

  /** The tokens are those of the blocks in turn, the last one perhaps not full. */
  allocate(instance: string, model: string, record: BlockRecord, now: number): void {
    const { req_id, new_block_ids: ids, new_token_ids: tokens } = record;
    const request = shortKey(req_id);
    const size = Math.ceil(tokens.length / ids.length);
    for (const [index, id] of ids.entries()) {
      const own = tokens.slice(index * size, (index + 1) * size);
      if (own.length > 0)
        this.#use(`${instance}\0${id}`, id, instance, model, shortKey(own.join()), request, now);
    }
  }

  release(requestId: string): void {
    const request = shortKey(requestId);
    this.#leave(this.#blocksOfRequest.take(request) ?? [], request);
  }

  #use(
    key: string,
    id: Int,
    instance: string,
    model: string,
    tokens: string,
    request: string,
    now: number,
  ): void {
    const block = this.#blocks.get(key);
    if (block?.tokens === tokens) {
      if (block.owners.has(request)) return;
      if (block.owners.size === 0) {
        block.lastUsedAt = now;
        block.uses.push(now);
        if (block.uses.length > MAX_USES) block.uses.shift();
      }
      this.#own(block, key, request);
    } else {
      if (block === undefined && !this.#isSampled(id)) return;
      if (block !== undefined) this.#evict(key, block, now);
      const fresh = {
        model,
        instance,
        tokens,
        allocatedAt: now,
        owners: new Set<string>(),
        lastUsedAt: now,
        uses: [],
      };
      this.#blocks.set(key, fresh);
      this.#own(fresh, key, request);
    }
  }

  #own(block: Block, key: string, request: string): void {
    block.owners.add(request);
    this.#owned++;
    const known = this.#blocksOfRequest.get(request);
    if (known === undefined) this.#blocksOfRequest.set(request, new Set([key]));
    else known.add(key);
    const { counts, options } = this.#deps;
    while (this.#owned > OWNED_PER_TRACKED * options.maxTracked) {
      this.release(this.#blocksOfRequest.oldest?.key ?? request);
      counts.untracked++;
    }
  }

  #leave(keys: Iterable<string>, request: string): void {
    for (const key of keys) {
      if (this.#blocks.get(key)?.owners.delete(request) === true) this.#owned--;
    }
  }

  #evict(
    key: string,
    { model, instance, allocatedAt, lastUsedAt, owners, uses }: Block,
    now: number,
  ): void {
    const { series } = this.#deps;
    const labels = labelsOf({ instance_id: instance, model_name: model });
    series.observe('l0_block_lifetime', now - allocatedAt, labels);
    series.observe('l0_block_idle_before_evict', now - lastUsedAt, labels);
    for (let index = 1; index < uses.length; index++)
      series.observe(
        'l0_block_reuse_gap',
        (uses[index] as number) - (uses[index - 1] as number),
        labels,
      );
    this.#disown(owners, key);
  }

  #disown(owners: ReadonlySet<string>, key: string): void {
    this.#owned -= owners.size;
    for (const owner of owners) this.#blocksOfRequest.get(owner)?.delete(key);
  }

  #isSampled(id: Int): boolean {
    return (Math.imul(Number(id), SPREAD) >>> 0) / 2 ** 32 < this.#deps.options.sampleRate;
  }
}
