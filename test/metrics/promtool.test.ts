/** `/metrics` of a running worker, as Prometheus' own checker sees it. */
import { expect, test } from 'vitest';
import { RunningWorker } from '../status/running-worker.ts';
import { eventually } from '../support/plane-collector.ts';
import { findPromtool, PROMTOOL_TIMEOUT_MS, promtoolComplaints } from './promtool.ts';

test(
  'promtool objects to nothing in /metrics, before and after events',
  async ({ skip }) => {
    const { path, reason } = findPromtool();
    if (path === null) {
      if (process.env.KVRELAY_REQUIRE_ALL === '1') throw new Error(`no promtool: ${reason}`);
      skip(`no promtool: ${reason}`);
      return;
    }
    const bad = promtoolComplaints(path, '# TYPE bad_total gauge\nbad_total 1\n');
    expect(bad).toContain('bad_total');

    const running = await RunningWorker.start(2);
    const complaints = async (): Promise<string> =>
      promtoolComplaints(path, await (await fetch(`${running.url}/metrics`)).text());
    try {
      expect(await complaints()).toBe('');
      running.play(10);
      const hasFiltered = (): boolean =>
        (running.worker.status().ranks[1]?.counters.filtered ?? 0) > 0;
      expect(await eventually(hasFiltered, 10_000)).toBe(true);
      expect(await complaints()).toBe('');
    } finally {
      await running.stop();
    }
  },
  PROMTOOL_TIMEOUT_MS,
);
