/**
 * Model of what a stock router's index holds of one rank: plain objects, no bound, nothing packed.
 *
 * The device tier is a tree of nodes, each a run of blocks; `held` says how many of a run's first blocks
 * the rank has. What was removed stays behind in its run, under its first hash. The other tiers are
 * sets of edges (parent hash, tokens hash) → block hash.
 * Judge   test/vectors/dynamo/router-index.jsonl, which a router of 1.6.1 wrote.
 */
import type { StorageTier } from '../../src/protocol/storage-tier.ts';

export interface ModelBlock {
  readonly blockHash: bigint;
  readonly tokensHash: bigint;
}

export type ModelEvent =
  | {
      readonly type: 'stored';
      readonly tier: StorageTier;
      readonly parent: bigint | null;
      readonly blocks: readonly ModelBlock[];
    }
  | { readonly type: 'removed'; readonly tier: StorageTier; readonly hashes: readonly bigint[] }
  | { readonly type: 'cleared' };

/** A held block as text: tier, parent, block hash, tokens hash. */
export type HeldRow = readonly [StorageTier, string | null, string, string];

class Node {
  run: ModelBlock[];
  held: number;
  children = new Map<bigint, Node>();
  /** Once it has had children, a run grows no more. */
  wasParent = false;

  constructor(run: ModelBlock[], held: number) {
    this.run = run;
    this.held = held;
  }

  positionOf(hash: bigint): number {
    return this.run.findLastIndex(({ blockHash }) => blockHash === hash);
  }

  get tail(): bigint | null {
    return this.run.at(-1)?.blockHash ?? null;
  }

  hold(count: number): void {
    this.held = Math.max(this.held, count);
  }
}

export class RouterIndexModel {
  readonly #root = new Node([], 0);
  /** The node that a hash was last stored in; its run may hold the place under another hash. */
  readonly #names = new Map<bigint, Node>();
  readonly #lower = new Map<StorageTier, LowerTierModel>();

  /** True once the router's answer hung on the order of a hash map. */
  isAmbiguous = false;

  apply(event: ModelEvent): void {
    if (event.type === 'cleared') {
      this.#clear();
    } else if (event.tier !== 'device') {
      this.#lowerTier(event.tier).apply(event);
    } else if (event.type === 'stored') {
      this.#store(event.parent, event.blocks);
    } else {
      this.#remove(event.hashes);
    }
  }

  /** Parents before children. */
  rows(): HeldRow[] {
    const rows: HeldRow[] = [];
    const visit = (node: Node, above: bigint | null): void => {
      let parent = above;
      for (const { blockHash, tokensHash } of node.run.slice(0, node.held)) {
        rows.push([
          'device',
          parent === null ? null : `${parent}`,
          `${blockHash}`,
          `${tokensHash}`,
        ]);
        parent = blockHash;
      }
      for (const child of node.children.values()) visit(child, node.tail);
    };
    visit(this.#root, null);
    return [...rows, ...[...this.#lower].flatMap(([tier, lower]) => lower.rows(tier))];
  }

  #store(parent: bigint | null, blocks: readonly ModelBlock[]): void {
    if (parent === null) {
      this.#insert(this.#root, null, blocks);
      return;
    }
    const node = this.#resolve(parent);
    if (node === null) return;
    const position = node.positionOf(parent);
    if (position >= node.held) {
      this.#names.delete(parent);
      return;
    }
    if (!this.#continueRun(node, position, blocks)) this.#insert(node, parent, blocks);
  }

  /** Takes blocks that a run already has after `position`; otherwise the run ends there from now on. */
  #continueRun(node: Node, position: number, blocks: readonly ModelBlock[]): boolean {
    const rest = node.run.slice(position + 1);
    if (rest.length === 0) return false;
    const same = rest.slice(0, blocks.length).every((one, at) => isSame(one, blocks[at]));
    if (same && blocks.length <= rest.length) {
      node.hold(position + 1 + blocks.length);
    } else if (same && !node.wasParent) {
      node.run.push(...blocks.slice(rest.length));
      node.held = node.run.length;
    } else {
      this.#split(node, position + 1);
      return false;
    }
    this.#name(blocks, node);
    return true;
  }

  #insert(start: Node, parent: bigint | null, stored: readonly ModelBlock[]): void {
    let node = start;
    let last = parent;
    let blocks = stored;
    for (let first = blocks[0]; first !== undefined; first = blocks[0]) {
      if (last !== null && node.tail !== last) {
        const position = node.positionOf(last);
        if (position >= 0) {
          if (this.#continueRun(node, position, blocks)) return;
          continue;
        }
        // The place has another hash: what follows hangs under a name that leads nowhere.
        const resolved = this.#resolve(last);
        if (resolved === null) return;
        node = resolved;
        continue;
      }
      const child = node.children.get(first.tokensHash);
      if (child === undefined) {
        this.#append(node, last, blocks);
        return;
      }
      const match = matchLength(child.run, blocks);
      if (match < child.run.length) {
        this.#leaveRun(child, match, blocks);
        return;
      }
      child.held = child.run.length;
      this.#name(blocks.slice(0, match), child);
      last = blocks[match - 1]?.blockHash ?? null;
      blocks = blocks.slice(match);
      node = child;
    }
  }

  #append(node: Node, last: bigint | null, blocks: readonly ModelBlock[]): void {
    if (last !== null && !node.wasParent && node.held === node.run.length) {
      node.run.push(...blocks);
      node.held = node.run.length;
      this.#name(blocks, node);
      return;
    }
    const child = new Node([...blocks], blocks.length);
    const tokensHash = blocks[0]?.tokensHash as bigint;
    node.children.set(tokensHash, child);
    node.wasParent = true;
    this.#name(blocks, child);
  }

  /** A store ends, or turns off, within a run. */
  #leaveRun(node: Node, match: number, blocks: readonly ModelBlock[]): void {
    const rest = blocks.slice(match);
    if (rest.length === 0) {
      node.hold(match);
      this.#name(blocks, node);
      return;
    }
    this.#split(node, match);
    node.held = node.run.length;
    this.#name(blocks.slice(0, match), node);
    this.#append(node, null, rest);
  }

  #split(node: Node, at: number): void {
    const suffix = new Node(node.run.slice(at), Math.max(0, node.held - at));
    suffix.children = node.children;
    suffix.wasParent = suffix.children.size > 0;
    node.run = node.run.slice(0, at);
    node.held = Math.min(node.held, at);
    node.children = new Map([[suffix.run[0]?.tokensHash as bigint, suffix]]);
    node.wasParent = true;
    this.#name(suffix.run.slice(0, suffix.held), suffix);
  }

  #remove(hashes: readonly bigint[]): void {
    let node: Node | null = null;
    let group: number[] = [];
    const flush = (): void => {
      if (node !== null && group.length > 0) this.#cut(node, Math.min(...group));
      group = [];
    };
    for (const hash of hashes) {
      // What lies in the run at hand is taken there, wherever the hash was stored last.
      if (node === null || node.positionOf(hash) < 0) {
        flush();
        node = this.#resolve(hash);
      }
      if (node !== null) group.push(node.positionOf(hash));
    }
    flush();
  }

  #cut(node: Node, position: number): void {
    if (position >= node.held) {
      this.#names.delete(node.run[position]?.blockHash as bigint);
    } else {
      node.held = position;
      for (const { blockHash } of node.run.slice(position)) this.#names.delete(blockHash);
    }
    if (node.held < node.run.length) node.children = new Map();
  }

  #clear(): void {
    this.#names.clear();
    this.#lower.clear();
    for (const node of this.#root.children.values()) {
      node.held = 0;
      node.children = new Map();
    }
  }

  #resolve(hash: bigint): Node | null {
    const named = this.#names.get(hash);
    if (named === undefined) return null;
    for (let level = [named]; level.length > 0; ) {
      const found = level.filter((node) => node.positionOf(hash) >= 0);
      if (found.length > 1) this.isAmbiguous = true;
      if (found[0] !== undefined) {
        this.#names.set(hash, found[0]);
        return found[0];
      }
      level = level.flatMap((node) => [...node.children.values()]);
    }
    return null;
  }

  #name(blocks: readonly ModelBlock[], node: Node): void {
    for (const { blockHash } of blocks) this.#names.set(blockHash, node);
  }

  #lowerTier(tier: StorageTier): LowerTierModel {
    const lower = this.#lower.get(tier) ?? new LowerTierModel();
    this.#lower.set(tier, lower);
    return lower;
  }
}

class LowerTierModel {
  readonly #edges = new Map<string, bigint>();
  readonly #blocks = new Map<bigint, { readonly parent: bigint | null; readonly tokens: bigint }>();

  apply(event: Exclude<ModelEvent, { type: 'cleared' }>): void {
    if (event.type === 'stored') this.#store(event.parent, event.blocks);
    else for (const hash of event.hashes) this.#remove(hash);
  }

  rows(tier: StorageTier): HeldRow[] {
    return [...this.#blocks].map(([hash, { parent, tokens }]) => [
      tier,
      parent === null ? null : `${parent}`,
      `${hash}`,
      `${tokens}`,
    ]);
  }

  #store(first: bigint | null, blocks: readonly ModelBlock[]): void {
    let parent = first;
    for (const { blockHash, tokensHash } of blocks) {
      const edge = `${parent} ${tokensHash}`;
      const known = this.#blocks.get(blockHash);
      const isElsewhere = known !== undefined && `${known.parent} ${known.tokens}` !== edge;
      if (isElsewhere || (this.#edges.get(edge) ?? blockHash) !== blockHash) return;
      this.#edges.set(edge, blockHash);
      this.#blocks.set(blockHash, { parent, tokens: tokensHash });
      parent = blockHash;
    }
  }

  #remove(hash: bigint): void {
    const known = this.#blocks.get(hash);
    if (known === undefined) return;
    this.#blocks.delete(hash);
    this.#edges.delete(`${known.parent} ${known.tokens}`);
  }
}

function isSame(one: ModelBlock, other: ModelBlock | undefined): boolean {
  return one.blockHash === other?.blockHash && one.tokensHash === other.tokensHash;
}

function matchLength(run: readonly ModelBlock[], blocks: readonly ModelBlock[]): number {
  const end = run.findIndex(({ tokensHash }, at) => tokensHash !== blocks[at]?.tokensHash);
  return end < 0 ? run.length : end;
}
