import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  introduction,
  LiveDisplay,
  type LiveFigures,
  liveFigures,
  liveLine,
  plainLine,
  RateMeter,
  summary,
} from '../../src/cli/live-line.ts';
import { rankStatus, snapshot } from '../status/fake-status.ts';

const figures: LiveFigures = {
  uptimeS: 83,
  batches: 4150,
  lostBatches: 0,
  malformed: 0,
  eventsIn: 20_071,
  coalesced: 8532,
  suppressed: 41,
  publishedEvents: 11_498,
  publishedBlocks: 27_114,
  blocks: { device: 287, host_pinned: 0, disk: 0, external: 0 },
  latencyMs: { p50: 0.1, p99: 2.5 },
};

describe('the live line', () => {
  test.each([
    [
      200,
      'batches 4,150  events in 20,071  coalesced 8,532  suppressed 41  published 11,498  ' +
        'live blocks device 287 host_pinned 0 disk 0 external 0  rate 196 events/s  ' +
        'latency p50 0.1 ms p99 2.5 ms',
    ],
    [
      120,
      'batches 4,150  in 20,071  coalesced 8,532  suppressed 41  published 11,498  ' +
        'live device 287  196 events/s  p50 0.1 ms',
    ],
    [80, 'batches 4150 in 20.1k coal 8532 supp 41 pub 11.5k device 287 196/s p50 0.1 ms'],
    [77, 'batches 4150 in 20.1k coal 8532 supp 41 pub 11.5k device 287 196/s 0.1 ms'],
    [60, 'batches 4150 in 20.1k coal 8532 supp 41 pub 11.5k'],
    [14, 'batches 4150'],
    [10, ''],
  ])('%d columns', (columns, line) => {
    expect(liveLine(figures, 196.4, columns)).toBe(line);
  });

  test('names a further tier as soon as it holds a block', () => {
    const blocks = { device: 287, host_pinned: 0, disk: 12_345, external: 0 };
    expect(liveLine({ ...figures, blocks }, 0, 130)).toContain('live device 287 disk 12,345  ');
    expect(liveLine({ ...figures, blocks }, 0, 80)).toContain(' device 287 disk 12.3k ');
  });

  test('says a latency that is not known yet', () => {
    const latencyMs = { p50: null, p99: null };
    expect(liveLine({ ...figures, latencyMs }, 0, 80)).toMatch(/ p50 - ms$/);
  });

  test('is shorter than the terminal is wide, whatever it shows', () => {
    const count = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    const anyFigures = fc.record({
      ...Object.fromEntries(Object.keys(figures).map((key) => [key, count])),
      blocks: fc.record({ device: count, host_pinned: count, disk: count, external: count }),
      latencyMs: fc.record({ p50: fc.constantFrom(null, 0.025, 15_000), p99: fc.constant(null) }),
    });
    fc.assert(
      fc.property(anyFigures, count, fc.nat(250), (any, rate, columns) => {
        const line = liveLine(any as unknown as LiveFigures, rate, columns);
        expect(line.length).toBeLessThanOrEqual(Math.max(columns - 1, 0));
      }),
    );
  });

  test('has room for all its figures in 80 columns after a week', () => {
    const line = liveLine(
      {
        ...figures,
        batches: 24_192_000,
        eventsIn: 118_540_800,
        coalesced: 47_416_320,
        suppressed: 193_536,
        publishedEvents: 71_124_480,
      },
      196,
      80,
    );
    expect(line).toBe(
      'batches 24.2M in 119M coal 47.4M supp 194k pub 71.1M device 287 196/s 0.1 ms',
    );
  });
});

test('the introduction names the addresses, in lines of at most 80 columns', () => {
  const text = introduction('vllm 0.33.0', snapshot(), 'http://127.0.0.1:9464');
  expect(text).toContain('\n  status page  http://127.0.0.1:9464/\n');
  expect(text).toContain('\n  event plane  zmq tcp://127.0.0.1:5570\n\n');
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(80);
  expect(introduction('vllm 0.33.0', snapshot(), null)).not.toContain('/metrics');
});

test('the line without a terminal is whole and says how long it has been', () => {
  expect(plainLine(figures, 0)).toMatch(/^1 min 23 s {2}batches 4,150 {2}events in 20,071 .* ms$/);
});

test('the summary says what was lost, taken out and passed on', () => {
  expect(summary({ ...figures, uptimeS: 34 })).toBe(
    `kvrelay demo relayed for 34 s:
  batches  4,150 in, 0 lost, 0 malformed
  events   20,071 in, 8,532 coalesced, 11,498 published
  blocks   27,114 published, 41 removes suppressed, live at the end: device 287
  latency  p50 0.1 ms, p99 2.5 ms
`,
  );
});

test('figures are those of all ranks, and of the latencies the worst', () => {
  const engine = { ...rankStatus(0).engine, last_seq: '99' };
  const counters = { ...rankStatus(0).counters, lost_batches: 10 };
  const ranks = [
    rankStatus(0, { engine, counters }),
    rankStatus(1, {
      engine: { ...engine, last_seq: null },
      latency_ms: { p50: 0.25, p99: null },
      blocks: { device: 1, host_pinned: 2, disk: 3, external: 4 },
    }),
  ];
  expect(liveFigures(snapshot({ uptime_s: 7, ranks }))).toEqual({
    uptimeS: 7,
    batches: 90,
    lostBatches: 10,
    malformed: 0,
    eventsIn: 2000,
    coalesced: 600,
    suppressed: 100,
    publishedEvents: 1100,
    publishedBlocks: 8800,
    blocks: { device: 120_001, host_pinned: 4002, disk: 3, external: 4 },
    latencyMs: { p50: 0.25, p99: 2.5 },
  });
});

test('the rate is that of the last five seconds, or of a longer interval', () => {
  const often = new RateMeter();
  expect(often.observe(0, 1000)).toBe(0);
  expect(often.observe(50, 1500)).toBe(100);
  for (let atMs = 2000; atMs <= 60_000; atMs += 500) {
    expect(often.observe(atMs / 10 - 100, atMs)).toBeCloseTo(100);
  }
  expect(often.observe(5900, 65_000)).toBe(0);
  const seldom = new RateMeter();
  seldom.observe(0, 0);
  expect(seldom.observe(2000, 10_000)).toBe(200);
  expect(seldom.observe(3000, 20_000)).toBe(100);
});

describe('the display', () => {
  function setUp() {
    let written = '';
    const display = new LiveDisplay({
      write: (text) => {
        written += text;
      },
    });
    const take = (): string => {
      const text = written;
      written = '';
      return text;
    };
    return { display, take };
  }

  test('draws over its line and leaves the cursor at its start', () => {
    const { display, take } = setUp();
    display.draw('one');
    expect(take()).toBe('\rone\x1b[J\r');
  });

  test('takes its line away for what is written above, and draws it again below', () => {
    const { display, take } = setUp();
    display.draw('live');
    take();
    let seen = '';
    display.above(() => {
      seen = take();
    });
    expect(seen).toBe('\r\x1b[J');
    expect(take()).toBe('\rlive\x1b[J\r');
  });

  test('without a line writes nothing of its own', () => {
    const { display, take } = setUp();
    let calls = 0;
    display.above(() => calls++);
    display.clear();
    display.draw('x');
    display.clear();
    display.above(() => calls++);
    expect(take()).toBe('\rx\x1b[J\r\r\x1b[J');
    expect(calls).toBe(2);
  });
});
