/**
 * Seeded streams through publishers whose engine's cache is not run: all storage tiers of the newest
 * SGLang, and, with `--all-versions`, what older versions write.
 */
import { type EngineVersion, FETCHED, isNewest, newestOf } from './engines.ts';
import type { Compat } from './play.ts';
import { describeStreams, type Stream } from './stream-suite.ts';

/** Their batches have no rank, so that `strict` rejects all of them. */
const SAFE_ONLY: ReadonlySet<string> = new Set(['vllm 0.9.0', 'sglang 0.4.6.post5']);

function stream(
  version: EngineVersion,
  name: string,
  compat: readonly Compat[],
  more: Record<string, string> = {},
): Stream {
  const flags = { '--batches': '1500', '--events-per-batch': '3', '--capacity': '200', ...more };
  return { ...version, name, flags: Object.entries(flags).flat(), blockSize: 16, compat };
}

function compatOf({ engine, version }: EngineVersion): readonly Compat[] {
  return SAFE_ONLY.has(`${engine} ${version}`) ? ['safe'] : ['strict', 'safe'];
}

describeStreams([
  stream(newestOf('sglang'), 'on all tiers', ['strict', 'safe'], {
    '--media': 'GPU,CPU_PINNED,DISK,EXTERNAL',
  }),
  ...FETCHED.filter((version) => !isNewest(version)).map((version) =>
    stream(version, 'of an older publisher', compatOf(version)),
  ),
]);
