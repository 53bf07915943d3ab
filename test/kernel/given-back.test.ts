/** Kernel memory is shared by all relays of a process: one that has ended must leave none of it taken. */
import { Subject } from 'rxjs';
import { expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { views } from '../../src/kernel/kernel.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { pipeline } from '../../src/pipeline.ts';
import type { NativeBatch } from '../../src/protocol/native-batch.ts';
import { MemorySink } from '../../src/sinks/memory.ts';
import { f, St, trialConfig } from '../support/trials.ts';

/** Bytes of kernel memory after as many turns of `use`. */
function bytesAfter(turns: number, use: () => void): number {
  for (let turn = 0; turn < turns; turn++) use();
  return views.u8.length;
}

function relayOnce(): void {
  const native$ = new Subject<NativeBatch>();
  const deps = { config: trialConfig(), indexer: null, sink: new MemorySink() };
  pipeline(native$, { ...deps, metrics: new RelayMetrics() }).subscribe();
  const reader = new BatchReader({ compat: 'safe', engine: 'vllm' });
  const [, , payload] = f(0, [St([1, 2, 3])]);
  const batch = reader.read(payload ?? Buffer.alloc(0), 0);
  if (typeof batch === 'string') throw new Error(batch);
  native$.next(batch);
  native$.complete();
  reader.free();
}

test('a pipeline and a reader that have ended', () => {
  const first = bytesAfter(20, relayOnce);
  expect(bytesAfter(200, relayOnce)).toBe(first);
});
