/**
 * The data path does not come to do more for a batch: kernel calls, garbage and buffers on a fixed stream, counted and so
 * the same on a slow machine as on a quick one.
 *
 * A figure that has grown for a good reason is raised here, one that has shrunk is lowered. Bytes are those of Node 20.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('support/batch-work.mjs', import.meta.url));
const HEAP_FLAGS = ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256'];
/** How much of a known figure is too much; an object an event more is about 17 % of the bytes. */
const MOST = { calls: 1.25, bytes: 1.12 };
/** Less than that, and the figures below guard nothing. */
const LEAST = 0.5;

type Figures = Readonly<Record<string, number>>;

interface Work {
  readonly stream: 'decode' | 'prefill' | 'live';
  readonly batchesATurn: number;
  readonly calls: Figures;
  readonly bytes: Figures;
}

/** Removes of a decode batch come in one of four, as one event. */
const DECODE_CALLS: Figures = {
  readEvents: 1,
  hashWindows: 16,
  countStored: 16,
  putStored: 16,
  treeStore: 16,
  releaseRemoved: 0.24,
  putRemoved: 0.24,
  treeRemove: 0.24,
};

const WORK: readonly Work[] = [
  {
    stream: 'decode',
    batchesATurn: 1,
    calls: DECODE_CALLS,
    bytes: { heap: 3540, buffers: 3480 },
  },
  {
    // So many that batches share messages.
    stream: 'decode',
    batchesATurn: 64,
    calls: DECODE_CALLS,
    bytes: { heap: 2310, buffers: 3890 },
  },
  {
    stream: 'prefill',
    batchesATurn: 1,
    calls: {
      readEvents: 1,
      repeats: 1,
      hashWindows: 1,
      countStored: 1,
      putStored: 1,
      treeStore: 1,
      releaseRemoved: 1,
      putRemoved: 1,
      treeRemove: 1,
    },
    bytes: { heap: 3540, buffers: 9560 },
  },
  {
    // As decode, among so many blocks that tables outgrow the cache.
    stream: 'live',
    batchesATurn: 1,
    calls: { ...DECODE_CALLS, lookAhead: 1, treeLookAhead: 1 },
    bytes: { heap: 3540, buffers: 3480 },
  },
];

async function measured(
  measure: 'calls' | 'bytes',
  { stream, batchesATurn }: Work,
): Promise<Figures> {
  const flags = measure === 'bytes' ? HEAP_FLAGS : [];
  const args = [...flags, PROGRAM, measure, stream, String(batchesATurn)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Figures;
}

/** One line a figure that has left its bounds. */
function changes(found: Figures, known: Figures, unit: 'calls' | 'bytes'): string[] {
  const names = [...new Set([...Object.keys(known), ...Object.keys(found)])];
  return names.flatMap((name) => {
    const was = known[name] ?? 0;
    const is = found[name] ?? 0;
    if (is > was * MOST[unit]) return [`${name} grew: ${was} to ${is} ${unit} a batch`];
    if (is < was * LEAST) return [`${name} shrank, lower it: ${was} to ${is} ${unit} a batch`];
    return [];
  });
}

describe.each(WORK)('A batch of $stream, $batchesATurn a turn, comes to no more', (work) => {
  test('kernel calls', async () => {
    expect(changes(await measured('calls', work), work.calls, 'calls')).toEqual([]);
  });

  test('bytes', async () => {
    expect(changes(await measured('bytes', work), work.bytes, 'bytes')).toEqual([]);
  });
});
