/** SGLang's own RadixCache and ZmqEventPublisher, through `kvrelay run`. */
import { newestOf } from './engines.ts';
import { describeStreams, type Stream } from './stream-suite.ts';

const VARIANTS: readonly (readonly [name: string, flags: readonly string[]])[] = [
  ['plain', []],
  ['three cache salts', ['--salts', '3']],
  ['pairs of tokens', ['--eagle']],
];

function stream(name: string, variant: readonly string[], capacity: number): Stream {
  const flags = { '--source': 'radix', '--capacity': capacity, '--seed': 1 };
  const length = { '--batches': 3000, '--events-per-batch': 2 };
  return {
    ...newestOf('sglang'),
    name: `${name}, capacity ${capacity}`,
    flags: [...Object.entries({ ...flags, ...length }).flat(), ...variant].map(String),
    blockSize: 16,
    compat: ['strict', 'safe'],
  };
}

describeStreams(
  VARIANTS.flatMap(([name, flags]) => [60, 300].map((capacity) => stream(name, flags, capacity))),
);
