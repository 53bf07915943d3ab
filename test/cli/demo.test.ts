/**
 * The demo as a user starts it: the built command line as a process of its own, its child, its HTTP
 * addresses and its event plane.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { unpack } from 'msgpackr';
import { afterEach, expect, test } from 'vitest';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { eventually, ZmqCollector } from '../support/plane-collector.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

const processes = new Set<ChildProcess>();

afterEach(() => {
  // Their children end with them.
  for (const child of processes) child.kill('SIGKILL');
  processes.clear();
});

class Demo {
  readonly process: ChildProcess;
  readonly exited: Promise<unknown[]>;
  stdout = '';
  stderr = '';

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const { PATH = '' } = process.env;
    this.process = spawn(process.execPath, [MAIN, 'demo', ...args], {
      env: { PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    processes.add(this.process);
    this.exited = once(this.process, 'exit');
    this.process.stdout?.setEncoding('utf8').on('data', (text) => {
      this.stdout += text;
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text) => {
      this.stderr += text;
    });
  }

  /** A demo on free ports, once its first events are through. */
  static async running(args: readonly string[] = ['--http', '127.0.0.1:0']): Promise<Demo> {
    const demo = new Demo(args);
    await demo.sees(() => demo.url !== undefined);
    await demo.reaches(({ counters }) => counters.published_events > 0);
    return demo;
  }

  get url(): string | undefined {
    return /status page {2}(http:\S+)\/\n/.exec(this.stdout)?.[1];
  }

  /** Process ids of the engines so far, as the log names them. */
  get enginePids(): number[] {
    return this.logLines('the recorded engine plays').map(({ pid }) => Number(pid));
  }

  logLines(message: string): Record<string, unknown>[] {
    const lines = this.stderr.split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
  }

  async get(path: string): Promise<Response> {
    return fetch(`${this.url}${path}`);
  }

  async status(): Promise<StatusSnapshot> {
    return (await (await this.get('/api/status')).json()) as StatusSnapshot;
  }

  async rank(): Promise<StatusSnapshot['ranks'][number]> {
    const [rank] = (await this.status()).ranks;
    if (rank === undefined) throw new Error('no rank');
    return rank;
  }

  /** Polls the status until it holds. */
  async reaches(holds: (rank: StatusSnapshot['ranks'][number]) => boolean): Promise<void> {
    const deadlineMs = performance.now() + 20_000;
    while (!holds(await this.rank())) {
      if (performance.now() > deadlineMs) throw new Error(JSON.stringify(await this.rank()));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async sees(condition: () => boolean): Promise<void> {
    const held = await eventually(() => condition() || this.process.exitCode !== null, 20_000);
    if (!held || !condition()) throw new Error(`${this.stdout}\n${this.stderr}`);
  }

  async exitCode(signal?: NodeJS.Signals): Promise<unknown> {
    if (signal !== undefined) this.process.kill(signal);
    return (await this.exited)[0];
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Types of the router events in one plane message. */
function eventTypes(payload: Uint8Array): string[] {
  const text = JSON.stringify(unpack(payload), (_, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return [...text.matchAll(/"(stored|removed|cleared)"/g)].map(([, type]) => String(type));
}

test('relays the recording to HTTP and to routers, and ends with a summary', async () => {
  const demo = await Demo.running();
  const ready = await demo.get('/health/ready?strict=1');
  expect([ready.status, (await demo.get('/health/live')).status]).toEqual([200, 200]);
  const page = await demo.get('/');
  expect(page.headers.get('content-type')).toMatch(/^text\/html/);
  expect((await page.text()).length).toBeGreaterThan(1000);

  const before = await demo.status();
  const router = new ZmqCollector(before.plane.endpoint ?? '');
  await router.subscribed();
  await demo.reaches(({ counters, engine }) => {
    return counters.suppressed_removes > 0 && Number(engine.last_seq) > 300;
  });
  const metrics = await (await demo.get('/metrics')).text();
  expect(metrics).toMatch(/^kvrelay_published_blocks_total\{.*event_type="removed".*\} [1-9]/m);
  expect(metrics).toMatch(/^kvrelay_cleared_total\{.*cause="engine".*\} [1-9]/m);

  const after = await demo.status();
  const [first, last] = [before.ranks[0]?.counters, after.ranks[0]?.counters];
  expect(after).toMatchObject({ state: 'ready', plane: { kind: 'zmq', connected: true } });
  expect(last?.received).toBeGreaterThan(first?.received ?? 0);
  expect(last?.published_events).toBeGreaterThan(first?.published_events ?? 0);
  expect(last?.coalesced).toBeGreaterThan(0);
  expect(last).toMatchObject({ lost_batches: 0, malformed: 0, filtered: 0 });
  expect(after.ranks[0]).toMatchObject({ dp_rank: 0, degraded: [], state: 'flowing' });
  expect(router.published.length).toBeGreaterThan(100);
  const types = new Set(router.published.flatMap(({ payload }) => eventTypes(payload)));
  expect([...types].sort()).toEqual(['cleared', 'removed', 'stored']);
  await router.close();

  expect(await demo.exitCode('SIGINT')).toBe(0);
  expect(demo.stdout).toMatch(/\n\d+ s {2}batches \d+ {2}events in /);
  expect(demo.stdout).not.toContain('\r');
  expect(demo.stdout).toMatch(
    /relayed for \d+ s:\n {2}batches {2}[\d,]+ in, 0 lost, 0 malformed\n/,
  );
  expect(demo.enginePids.map(isAlive)).toEqual([false]);
  expect(demo.stderr).not.toMatch(/"level":"(warn|error|fatal)"/);
});

test('a signal that comes twice at once, as through npm, ends it cleanly', async () => {
  const demo = await Demo.running();
  demo.process.kill('SIGINT');
  await demo.sees(() => demo.stderr.includes('"stopping"'));
  demo.process.kill('SIGINT');
  expect(await demo.exitCode('SIGINT')).toBe(0);
  expect(demo.stdout).toMatch(/relayed for/);
});

test('an engine that dies is followed by another, and no number is missing', async () => {
  const demo = await Demo.running();
  await demo.reaches(({ engine }) => Number(engine.last_seq) > 20);
  const [firstPid] = demo.enginePids;
  process.kill(firstPid as number, 'SIGKILL');
  await demo.reaches(({ engine }) => !engine.connected);
  const { engine: died } = await demo.rank();
  await demo.reaches(({ engine }) => Number(engine.last_seq) > Number(died.last_seq) + 20);
  expect(await demo.rank()).toMatchObject({ degraded: [], counters: { lost_batches: 0 } });
  expect(demo.logLines('the recorded engine ended; another follows')).toMatchObject([
    { level: 'warn', how: 'SIGKILL' },
  ]);
  expect(await demo.exitCode('SIGTERM')).toBe(0);
  expect(demo.enginePids.length).toBe(2);
  expect(demo.enginePids.filter(isAlive)).toEqual([]);
});

test('the engine ends with a demo that is killed', async () => {
  const demo = await Demo.running();
  const port = Number(/:(\d+)$/.exec((await demo.rank()).engine.endpoint)?.[1]);
  expect(await accepts(port)).toBe(true);
  await demo.exitCode('SIGKILL');
  // Nobody may reap an orphan: its process id says less than its socket.
  let isListening = true;
  for (let look = 0; look < 100 && isListening; look++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    isListening = await accepts(port);
  }
  expect(isListening).toBe(false);
});

test('takes a free HTTP port where the default one is taken, and none is named', async () => {
  const squatter = createServer().listen(9464, '127.0.0.1');
  // Taken by somebody else is as good.
  await Promise.race([once(squatter, 'listening'), once(squatter, 'error').catch(() => undefined)]);
  try {
    const demo = await Demo.running([]);
    expect(demo.url).not.toMatch(/:9464$/);
    expect(demo.logLines('the HTTP port is taken: a free one is used')).toHaveLength(1);
    expect(await demo.exitCode('SIGINT')).toBe(0);

    const named = new Demo([], { KVRELAY_HTTP: '127.0.0.1:9464' });
    expect(await named.exitCode()).toBe(1);
    expect(named.stderr).toMatch(/KVR_HTTP_LISTEN: Cannot serve HTTP on 127.0.0.1:9464/);
    expect(named.stdout).toBe('');
  } finally {
    squatter.close();
  }
});

test('takes the flags of run: another rank, no HTTP, no plane', async () => {
  const demo = await Demo.running([
    '--http',
    '127.0.0.1:0',
    '--dp-rank',
    '300',
    '--worker-id',
    '7',
  ]);
  expect(await demo.rank()).toMatchObject({ dp_rank: 300, worker_id: '7', degraded: [] });
  expect(await demo.exitCode('SIGINT')).toBe(0);

  const silent = new Demo(['--http', 'off', '--event-plane', 'none', '--log-level', 'silent']);
  await silent.sees(() => /published [1-9]/.test(silent.stdout));
  expect(silent.url).toBeUndefined();
  expect(await silent.exitCode('SIGINT')).toBe(0);
  expect(silent.stderr).toBe('');
});

test.each([
  ['several ranks', ['--dp-size', '2'], 2, /--dp-size '2' .* allowed: 1 in the demo/],
  ['a wrong value', ['--block-size', '0'], 2, /--block-size '0' is not possible/],
  [
    'an address of another host',
    ['--engine-endpoint', 'tcp://192.0.2.1:5557'],
    1,
    /KVR_DEMO_ENGINE: The recorded engine cannot publish on tcp:\/\/192.0.2.1:5557: EADDRNOTAVAIL/,
  ],
])('%s ends the start', async (_, args, exitCode, report) => {
  const demo = new Demo(args);
  expect(await demo.exitCode()).toBe(exitCode);
  expect(demo.stderr).toMatch(report);
  expect(demo.stdout).toBe('');
  expect(demo.enginePids.filter(isAlive)).toEqual([]);
});

/** Whether somebody listens on this port of the loopback. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
