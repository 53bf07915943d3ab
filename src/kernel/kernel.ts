/**
 * Kernel: the one WebAssembly instance that holds packed lists and tables and loops over them.
 *
 * Owns     the memory and the views on it; a view is made again when the memory has grown.
 * Numbers  a u64 crosses as two 32-bit words (low, high); addresses are u32. Words that are kept in objects
 *          are signed: V8 holds those as they are, and boxes a number above 2^31.
 * Source   src/kernel/assembly, compiled and embedded by the build.
 */
import { KERNEL_WASM_BASE64 } from './kernel.wasm.ts';

/** What TypeScript's ES libraries leave out and Node has. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

/** Writes events of a tree or tier from `at` on, as many as surely end before `end`; returns their end. */
type DumpPart = (
  handle: number,
  template: number,
  at: number,
  end: number,
  idLow: number,
  idHigh: number,
  dpRank: number,
) => number;

interface KernelExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  allocate(shift: number): number;
  release(address: number, shift: number): void;
  blockShift(bytes: number): number;
  roomLeft(): number;
  xxh3(at: number, bytes: number, seedLow: number, seedHigh: number, out: number): void;
  hashWindows(
    tokens: number,
    windowBytes: number,
    strideBytes: number,
    count: number,
    seedLow: number,
    seedHigh: number,
    out: number,
  ): void;
  repeats(list: number, count: number, hasParent: number, low: number, high: number): number;
  addText(at: number, bytes: number): number;
  readEvents(
    at: number,
    end: number,
    count: number,
    takesBytes: number,
    room: number,
    roomEnd: number,
    records: number,
    state: number,
  ): number;
  readHashes(at: number, end: number, count: number, out: number, takesBytes: number): number;
  readTokens(at: number, end: number, count: number, out: number): number;
  readBigrams(at: number, end: number, count: number, out: number): number;
  putU64(at: number, low: number, high: number): number;
  putBlocks(at: number, hashes: number, tokensHashes: number, count: number): number;
  putStored(
    at: number,
    template: number,
    idLow: number,
    idHigh: number,
    hasParent: number,
    parentLow: number,
    parentHigh: number,
    hashes: number,
    tokensHashes: number,
    count: number,
    dpRank: number,
  ): number;
  putRemoved(
    at: number,
    template: number,
    idLow: number,
    idHigh: number,
    hashes: number,
    count: number,
    dpRank: number,
  ): number;
  setSecret(low: number, high: number): void;
  newTable(wide: number): number;
  clearTable(table: number): void;
  freeTable(table: number): void;
  countStored(table: number, list: number, count: number, maxEntries: number): number;
  releaseRemoved(table: number, list: number, count: number): number;
  readonly LOOKED_AHEAD_FROM: { readonly value: number };
  lookAhead(table: number, keys: number, count: number): void;
  tagOf(table: number, low: number, high: number): number;
  namespaceOf(table: number, low: number, high: number, out: number): number;
  markNamespace(
    table: number,
    list: number,
    count: number,
    low: number,
    high: number,
    stamp: number,
  ): void;
  newTree(retained: number): number;
  freeTree(tree: number): void;
  treeClear(tree: number): void;
  treeStore(
    tree: number,
    hasParent: number,
    parentLow: number,
    parentHigh: number,
    hashes: number,
    tokens: number,
    count: number,
    maxLive: number,
  ): number;
  treeLookAhead(tree: number, keys: number, count: number): void;
  treeRemove(tree: number, hashes: number, count: number): void;
  treeMatch(tree: number, tokens: number, count: number, out: number): number;
  newTier(): number;
  freeTier(tier: number): void;
  clearTier(tier: number): void;
  tierStore(
    tier: number,
    hasParent: number,
    parentLow: number,
    parentHigh: number,
    hashes: number,
    tokens: number,
    count: number,
    maxBlocks: number,
  ): number;
  tierRemove(tier: number, hashes: number, count: number): void;
  tierMatch(
    tier: number,
    hasParent: number,
    parentLow: number,
    parentHigh: number,
    tokens: number,
    count: number,
    out: number,
  ): number;
  startTreeDump(tree: number): number;
  startTierDump(tier: number): void;
  dumpTree: DumpPart;
  dumpTier: DumpPart;
  dumpedEvents(): number;
  treeDumpEnded(tree: number): number;
  tierDumpEnded(tier: number): number;
  markUnsalted(table: number, list: number, count: number, stamp: number): void;
  forgetAmbiguous(table: number, list: number, count: number, stamp: number): void;
  forgetNamespace(table: number, list: number, count: number): void;
}

/** The kernel's memory is full: 4 GiB is all that 32-bit WebAssembly can address. */
export class KernelMemoryError extends Error {
  override readonly name = 'KernelMemoryError';
}

const instance = new WebAssembly.Instance(
  new WebAssembly.Module(Buffer.from(KERNEL_WASM_BASE64, 'base64')),
  {},
);

/** The kernel's functions as they are. Whoever calls one that may grow memory refreshes after it. */
export const wasm: KernelExports = instance.exports as KernelExports;

const [secretLow = 0, secretHigh = 0] = crypto.getRandomValues(new Uint32Array(2));
wasm.setSecret(secretLow, secretHigh);

class KernelViews {
  u8: Uint8Array = new Uint8Array(wasm.memory.buffer);
  u32: Uint32Array = new Uint32Array(wasm.memory.buffer);
  i32: Int32Array = new Int32Array(wasm.memory.buffer);

  /** Growing detaches the old buffer, which shows as a view of length 0. */
  refresh(): void {
    if (this.u8.length > 0) return;
    this.u8 = new Uint8Array(wasm.memory.buffer);
    this.u32 = new Uint32Array(wasm.memory.buffer);
    this.i32 = new Int32Array(wasm.memory.buffer);
  }
}

/** The memory as bytes and as words; read the field each time, a grown memory has new views. */
export const views: KernelViews = new KernelViews();

/** A run of kernel memory, aligned to 64. */
export interface KernelBlock {
  readonly address: number;
  readonly bytes: number;
}

/** A block of at least `bytes`. Throws KernelMemoryError. */
export function allocateBlock(bytes: number): KernelBlock {
  const shift = wasm.blockShift(bytes);
  const address = shift > 31 ? 0 : wasm.allocate(shift) >>> 0;
  if (address === 0) throw new KernelMemoryError(`No room for ${bytes} bytes in kernel memory`);
  views.refresh();
  return { address, bytes: 2 ** shift };
}

export function releaseBlock({ address, bytes }: KernelBlock): void {
  wasm.release(address, wasm.blockShift(bytes));
}

/** Bytes that the kernel has taken of its address space so far, freed ones included. */
export function kernelBytesTaken(): number {
  return 0xffff_0000 - (wasm.roomLeft() >>> 0);
}

/** Room for results that do not fit a return value: two u64 at most. */
export const resultAddress: number = allocateBlock(16).address;
