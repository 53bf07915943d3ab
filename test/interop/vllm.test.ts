/** vLLM's own KVCacheManager and ZmqEventPublisher, through `kvrelay run`. */
import { newestOf } from './engines.ts';
import type { Compat } from './play.ts';
import { describeStreams, type Stream } from './stream-suite.ts';

interface Variant {
  readonly capacity: number;
  readonly groups: number;
  readonly loras?: number;
}

const VARIANTS: readonly Variant[] = [
  { capacity: 60, groups: 1 },
  { capacity: 60, groups: 2, loras: 2 },
  { capacity: 300, groups: 1, loras: 2 },
  { capacity: 300, groups: 2 },
];

function stream(
  hashes: 'int' | 'bytes',
  { capacity, groups, loras = 0 }: Variant,
  compat: readonly Compat[],
): Stream {
  const cache = { '--capacity': capacity, '--groups': groups, '--loras': loras, '--seed': 1 };
  const length = { '--batches': 2500, '--events-per-batch': 2 };
  const flags = { '--source': 'manager', '--hashes': hashes, ...cache, ...length };
  return {
    ...newestOf('vllm'),
    name: `${hashes} hashes, capacity ${capacity}, groups ${groups}, adapters ${loras}`,
    flags: Object.entries(flags).flat().map(String),
    blockSize: 16,
    compat,
  };
}

describeStreams(VARIANTS.map((variant) => stream('int', variant, ['strict', 'safe'])));

describeStreams(VARIANTS.map((variant) => stream('bytes', variant, ['safe'])));
