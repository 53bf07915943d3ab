/**
 * LMCache's real bus with its own metrics subscribers, and `kvrelay run` behind the bridge, on the same seeded
 * events: requests side by side, failures, callbacks of GPU streams out of order.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { freePorts } from '../support/free-ports.ts';
import { type PrometheusPage, pageOf, parsePage } from '../support/prometheus-page.ts';
import { RunProcess } from '../support/run-process.ts';
import { canRun, newestOf, PYTHON, versionsOf } from './engines.ts';

const PROGRAM = fileURLToPath(new URL('../peers/lmcache_metrics.py', import.meta.url));
const TIMEOUT_MS = 90_000;

interface Result {
  readonly events: number;
  readonly exceptions: Readonly<Record<string, number>>;
  readonly dropped: number;
  readonly page: string;
}

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startRelay(bridge: number, replay: number): Promise<RunProcess> {
  const engine = ['--engine-endpoint', `tcp://127.0.0.1:${await freePorts(1)}`];
  const servesAt = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
  const from = ['--lmcache-bridge', `tcp://127.0.0.1:${bridge}`];
  const again = ['--lmcache-replay', `tcp://127.0.0.1:${replay}`];
  const all = ['--lmcache-sample-percent', '100', '--lmcache-pair-timeout-s', '1000000'];
  // A bus that is busy making its events answers late, and says nothing more afterwards.
  const patient = ['--replay-idle-ms', '20000'];
  const flags = [
    ...engine,
    '--block-size',
    '16',
    ...servesAt,
    ...from,
    ...again,
    ...patient,
    ...all,
  ];
  const relay = new RunProcess(['run', ...flags]);
  cleanups.push(() => relay.stop());
  const until = performance.now() + TIMEOUT_MS;
  while (relay.httpUrl === '' && performance.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 20));
  return relay;
}

/** The bus, once it has published everything; it stays up for replays. */
async function playBus(flags: readonly string[]): Promise<Result> {
  const bus: ChildProcess = spawn(PYTHON, [PROGRAM, ...flags], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  cleanups.push(() => {
    bus.stdin?.end();
    return new Promise((resolve) => bus.once('close', resolve));
  });
  let errors = '';
  bus.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4096);
  });
  let output = '';
  return await new Promise((resolve, reject) => {
    bus.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.endsWith('\n')) resolve(JSON.parse(output) as Result);
    });
    bus.once('close', () => reject(new Error(`the bus has ended: ${errors}`)));
  });
}

function sumOf({ series }: PrometheusPage, name: string): number {
  let sum = 0;
  for (const [key, value] of series) if (key.startsWith(`${name}{`)) sum += value;
  return sum;
}

/** The page of the relay, once it has had so many events. */
async function pageAfter(relay: RunProcess, events: number): Promise<PrometheusPage> {
  const until = performance.now() + TIMEOUT_MS;
  for (;;) {
    const page = parsePage(await (await fetch(`${relay.httpUrl}/metrics`)).text());
    const seen = sumOf(page, 'kvrelay_source_events_total');
    if (seen === events) return page;
    if (seen > events || performance.now() > until) throw new Error(`${seen} of ${events} events`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

interface Played {
  readonly result: Result;
  readonly relay: PrometheusPage;
  readonly own: PrometheusPage;
}

async function played(
  version: string,
  events: number,
  seed: number,
  ...more: string[]
): Promise<Played> {
  const bridge = await freePorts(2);
  const relay = await startRelay(bridge, bridge + 1);
  const ports = ['--port', String(bridge), '--replay-port', String(bridge + 1)];
  const sizes = ['--events', String(events), '--seed', String(seed)];
  const result = await playBus(['--version', version, ...ports, ...sizes, ...more]);
  expect(result).toMatchObject({ exceptions: {}, dropped: 0 });
  const page = await pageAfter(relay, result.events);
  return { result, relay: page, own: pageOf(parsePage(result.page), 'lmcache_') };
}

describe.each(versionsOf('lmcache'))('LMCache $version', (release) => {
  test.skipIf(!canRun(release)).each([11, 12])(
    'has the same value in every series, seed %i',
    async (seed) => {
      const { result, relay, own } = await played(release.version, 6000, seed);
      const ours = pageOf(relay, 'lmcache_');
      const isNewest = release.version === newestOf('lmcache').version;
      // What is newer than the release moves here all the same.
      const common = isNewest
        ? ours.series
        : new Map([...ours.series].filter(([name]) => own.series.has(name)));
      expect(common).toEqual(own.series);
      for (const [name, type] of own.types) expect(ours.types.get(name), `${name}`).toBe(type);
      expect(sumOf(relay, 'kvrelay_lmcache_contract_violations_total')).toBe(0);
      expect(sumOf(relay, 'kvrelay_source_lost_messages_total')).toBe(0);
      console.log(
        `lmcache ${release.version}: ${result.events} events, ${own.series.size} series equal`,
      );
    },
  );
});

const newest = newestOf('lmcache');

test.skipIf(!canRun(newest))(
  'a bridge that is flooded drops events, and every one is counted',
  async () => {
    const bridge = await freePorts(2);
    const relay = await startRelay(bridge, bridge + 1);
    const ports = ['--port', String(bridge), '--replay-port', String(bridge + 1)];
    const flood = ['--events', '20000', '--queue-events', '50', '--flood'];
    const result = await playBus(['--version', newest.version, ...ports, ...flood]);
    expect(result.dropped).toBeGreaterThan(0);
    expect(result.exceptions).toEqual({});
    const page = await pageAfter(relay, result.events - result.dropped);
    expect(sumOf(page, 'kvrelay_lmcache_bridge_dropped_events_total')).toBe(result.dropped);
    expect(sumOf(page, 'kvrelay_source_lost_messages_total')).toBe(0);
    const { sources } = (await (
      await fetch(`${relay.httpUrl}/api/status`)
    ).json()) as StatusSnapshot;
    expect(sources[0]?.suspect).toBe(true);
    expect(sources[0]?.degraded.map(({ code }) => code)).toContain('lmcache_events_lost');
    console.log(`flooded: ${result.dropped} of ${result.events} events dropped, all counted`);
  },
);

test.skipIf(!canRun(newest))(
  'LMCache that is started again counts on, and is seen to be new',
  async () => {
    const bridge = await freePorts(2);
    const relay = await startRelay(bridge, bridge + 1);
    const ports = ['--port', String(bridge), '--replay-port', String(bridge + 1)];
    const first = await playBus(['--version', newest.version, ...ports, '--events', '1500']);
    await pageAfter(relay, first.events);
    await cleanups.pop()?.();
    const second = await playBus([
      '--version',
      newest.version,
      ...ports,
      '--events',
      '2500',
      '--seed',
      '5',
    ]);
    const page = await pageAfter(relay, first.events + second.events);
    expect(sumOf(page, 'kvrelay_source_restarts_total')).toBe(1);
    const name = 'lmcache_mp_lookups_requests_total';
    const own = [first, second].map((one) => sumOf(parsePage(one.page), name));
    expect(sumOf(page, name)).toBe((own[0] ?? 0) + (own[1] ?? 0));
  },
);

test.skipIf(!canRun(newest))(
  'salts beyond the bound share a series, and nothing is lost of the sums',
  async () => {
    const { relay, own } = await played(newest.version, 6000, 13, '--salts', '400');
    const name = 'lmcache_mp_lookup_requested_tokens_total';
    const salts = [...relay.series.keys()].filter((key) => key.startsWith(`${name}{`));
    expect(salts.some((key) => key.includes('cache_salt="kvrelay_overflow"'))).toBe(true);
    expect(new Set(salts.map((key) => /cache_salt="([^"]*)"/.exec(key)?.[1])).size).toBeLessThan(
      203,
    );
    expect(sumOf(relay, name)).toBe(sumOf(own, name));
    expect(sumOf(relay, 'kvrelay_lmcache_label_overflows_total')).toBeGreaterThan(0);
  },
);

test.skipIf(!canRun(newest))("the bus's own lag, with and without the bridge", () => {
  const lagOf = (...flags: string[]): string => {
    const args = [PROGRAM, '--lag', '--events', '40000', ...flags];
    const { stdout, stderr, status } = spawnSync(PYTHON, args, { encoding: 'utf8' });
    expect(status, `${stderr}`).toBe(0);
    return stdout.trim();
  };
  console.log(`without the bridge ${lagOf('--no-bridge')}`);
  const beside = lagOf('--port', '0', '--replay-port', '0');
  console.log(`with the bridge    ${beside}`);
  expect(JSON.parse(beside)).toMatchObject({ bridge: true, dropped: 0 });
});
