/**
 * Pad-token folding: image placeholders in a block become a token that stands for their image, so that
 * engine and router agree without knowing each other's placeholder count.
 *
 * Source  ai-dynamo/dynamo 1.6.1, multimodal placeholder folding of the KV publisher.
 */
import type { TokenList } from '../kernel/token-list.ts';

export interface PadTokenIds {
  readonly imageTokenId: number | null;
  readonly videoTokenId: number | null;
}

const PAD_BASE = 1_000_000;
const PAD_MASK = 2n ** 30n - 1n;

function padToken(mmHash: bigint): number {
  return PAD_BASE + Number(mmHash & PAD_MASK);
}

/** Replaces placeholder runs in place. False where the block keeps its raw tokens. */
export function foldPadTokens(
  window: TokenList,
  mmHashes: BigUint64Array,
  { imageTokenId, videoTokenId }: PadTokenIds,
): boolean {
  if (videoTokenId !== null) return foldExactly(window, mmHashes, imageTokenId, videoTokenId);
  if (imageTokenId !== null) return foldImages(window, mmHashes, imageTokenId);
  return false;
}

interface Run {
  readonly start: number;
  readonly end: number;
  readonly tokenId: number;
}

/** Maximal stretches of one of `tokenIds`. */
function runsOf(window: TokenList, tokenIds: readonly number[]): Run[] {
  const runs: Run[] = [];
  let index = 0;
  while (index < window.length) {
    const tokenId = window.at(index);
    const start = index++;
    if (!tokenIds.includes(tokenId)) continue;
    while (index < window.length && window.at(index) === tokenId) index++;
    runs.push({ start, end: index, tokenId });
  }
  return runs;
}

function replace(window: TokenList, run: Run, token: number): void {
  for (let index = run.start; index < run.end; index++) window.set(index, token);
}

/** Image ids alone: the i-th run stands for the i-th object, further runs for the last one. */
function foldImages(window: TokenList, mmHashes: BigUint64Array, imageTokenId: number): boolean {
  const runs = runsOf(window, [imageTokenId]);
  for (const [index, run] of runs.entries()) {
    const object = Math.min(index, mmHashes.length - 1);
    replace(window, run, padToken(mmHashes[object] as bigint));
  }
  return runs.length > 0;
}

/**
 * With videos the groups must match the objects one to one: an image run is a group of its own, the
 * runs of one video (its frames, text between them) are one until an image run comes.
 */
function foldExactly(
  window: TokenList,
  mmHashes: BigUint64Array,
  imageTokenId: number | null,
  videoTokenId: number,
): boolean {
  if (imageTokenId === videoTokenId) return false;
  const tokenIds = imageTokenId === null ? [videoTokenId] : [imageTokenId, videoTokenId];
  const runs = runsOf(window, tokenIds);
  const groups: number[] = [];
  let group = -1;
  let previous: number | null = null;
  for (const run of runs) {
    if (run.tokenId === imageTokenId || previous !== videoTokenId) group++;
    groups.push(group);
    previous = run.tokenId;
  }
  if (runs.length === 0 || group + 1 !== mmHashes.length) return false;
  for (const [index, run] of runs.entries()) {
    replace(window, run, padToken(mmHashes[groups[index] as number] as bigint));
  }
  return true;
}
