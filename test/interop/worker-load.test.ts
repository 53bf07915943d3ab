/** What is read of the metrics pages that the engines' own code writes, every fetched version. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readLoad } from '../../src/router/load/engine-series.ts';
import { canRun, type EngineVersion, FETCHED, newestOf, PYTHON } from './engines.ts';

const PROGRAM = fileURLToPath(new URL('../peers/engine_metrics.py', import.meta.url));

/** The newest is named even where it is missing, so that its absence shows. */
function versionsOf(engine: 'vllm' | 'sglang'): EngineVersion[] {
  const newest = newestOf(engine);
  const older = FETCHED.filter((have) => have.engine === engine && have.version !== newest.version);
  return [newest, ...older];
}

function page({ engine, version }: EngineVersion, usages: number[], flags: string[]): string {
  const given = usages.flatMap((usage) => ['--usage', String(usage)]);
  const args = [PROGRAM, engine, '--version', version, ...given, ...flags];
  return execFileSync(PYTHON, args, { encoding: 'utf8', maxBuffer: 64 << 20 });
}

/** Whether one page shows all engines of a front end. */
function showsAll(version: string): boolean {
  return !version.startsWith('0.9.');
}

describe.each(versionsOf('vllm'))('vLLM $version', (vllm) => {
  const ranks = { engine: 'vllm', dpRank: 0, dpSize: 1, blockSize: 16 } as const;

  test.skipIf(!canRun(vllm))('one engine', () => {
    const text = page(vllm, [0.25], ['--blocks', '400']);
    expect(readLoad(text, ranks)).toEqual({ usedBlocks: [100], fault: null });
  });

  test.skipIf(!canRun(vllm))('two engines of one front end', () => {
    const text = page(vllm, [0.25, 0.5], ['--blocks', '800', '--first-rank', '4']);
    const known = { usedBlocks: [100, 200], fault: null };
    const hidden = { usedBlocks: [null, null], fault: 'missing_series' };
    const expected = showsAll(vllm.version) ? known : hidden;
    expect(readLoad(text, { ...ranks, dpRank: 4, dpSize: 2 })).toEqual(expected);
  });
});

/** Their streams cannot be relayed, so their load is not published either. */
const UNREADABLE = /^0\.4\./;

const sglangs = versionsOf('sglang').filter(({ version }) => !UNREADABLE.test(version));

describe.each(sglangs)('SGLang $version', (sglang) => {
  const ranks = { engine: 'sglang', dpRank: 0, dpSize: 1, blockSize: 16 } as const;

  test.skipIf(!canRun(sglang))('without data parallelism', () => {
    const text = page(sglang, [0.25], ['--tokens', '6400']);
    expect(readLoad(text, ranks)).toEqual({ usedBlocks: [100], fault: null });
  });

  test.skipIf(!canRun(sglang))('two ranks', () => {
    const text = page(sglang, [0.25, 0.5], ['--tokens', '6400', '--first-rank', '4']);
    const known = { usedBlocks: [100, 200], fault: null };
    expect(readLoad(text, { ...ranks, dpRank: 4, dpSize: 2 })).toEqual(known);
  });
});
