/** The KV event stream of a real LMCache server: what is held beside it is what its L1 holds. */
import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { SourceStatus } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { Forwarder } from '../support/forwarder.ts';
import { configOf } from '../support/worker-config.ts';
import { LmcacheServer, lmcacheServerAvailable, type ServerChunk } from './lmcache-server.ts';

const WAIT_MS = 30_000;

function chunk(name: string, parent: string | null = null, model = 'm'): ServerChunk {
  return { model, hash: hashOf(name), parent: parent && hashOf(parent), tokens: [name.length, 2] };
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

interface Row {
  readonly source: string;
  readonly backend_id: string;
  readonly tenant_id: string;
  readonly object_key: string;
  readonly media: readonly string[];
}

class Follower {
  readonly worker: Worker;

  private constructor(worker: Worker) {
    this.worker = worker;
  }

  static async of(endpoint: string, ...flags: readonly string[]): Promise<Follower> {
    const own = ['--engine=none', '--event-plane=none', '--http=127.0.0.1:0'];
    const stream = [`--lmcache-stream=${endpoint}`, '--lmcache-model=m'];
    const worker = createWorker(configOf(...own, ...stream, ...flags), {
      logger: createLogger({ level: 'silent', format: 'json' }),
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    return new Follower(worker);
  }

  get source(): SourceStatus {
    return this.worker.status().sources[0] as SourceStatus;
  }

  async held(): Promise<string[]> {
    const text = await (await fetch(`${this.worker.httpUrl}/api/objects?source=lmcache`)).text();
    const rows = text.split('\n').filter((line) => line !== '');
    return rows
      .map((line) => JSON.parse(line) as Row)
      .map(({ backend_id, tenant_id, object_key, media }) => {
        expect([backend_id, media]).toEqual(['l1', ['cpu']]);
        return `${tenant_id} ${object_key}`;
      })
      .sort();
  }

  async holds(wanted: Iterable<string>): Promise<void> {
    const names = [...wanted].sort();
    await until(async () => (await this.held()).join() === names.join(), `${names.length} chunks`);
  }
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.skipIf(!lmcacheServerAvailable())('a real server', () => {
  test('two models, each by itself; what was there before is there', async () => {
    const server = await LmcacheServer.start();
    await server.store(chunk('a'), chunk('b', 'a'), chunk('a', null, 'other'));
    const follower = await Follower.of(server.endpoint, '--lmcache-stream-models=other,empty');
    await follower.holds(server.held);
    await server.store(chunk('c'), chunk('b', 'a'), chunk('c', null, 'unfollowed'));
    await server.evict('m', hashOf('a'), hashOf('b'));
    server.held.delete(`unfollowed ${hashOf('c')}`);
    await follower.holds(server.held);
    const { counters, connected, suspect } = follower.source;
    expect(counters).toMatchObject({ lost_messages: 0, malformed: 0, dropped_events: 0 });
    expect([connected, suspect, await server.subscribers()]).toEqual([true, false, 3]);
  });

  test('an overflow of its bus: all before is given up, what comes is held', async () => {
    const server = await LmcacheServer.start('--queue-size=50');
    await server.store(chunk('a'), chunk('b'));
    const follower = await Follower.of(server.endpoint);
    await follower.holds(server.held);
    await server.overflow('m', hashOf('a'));
    await follower.holds([]);
    await server.store(chunk('c'));
    await follower.holds([`m ${hashOf('c')}`]);
    const { lost_messages, invalidated_objects } = follower.source.counters;
    expect([lost_messages, invalidated_objects]).toEqual([1, 2]);
  });

  test('a restart: nothing of its life before stays', async () => {
    const server = await LmcacheServer.start();
    await server.store(chunk('a'), chunk('b'));
    const follower = await Follower.of(server.endpoint);
    await follower.holds(server.held);
    await server.restart();
    await server.store(chunk('c'), chunk('d'), chunk('e'));
    await follower.holds(server.held);
    expect(follower.source.counters.restarts).toBe(1);
  });

  test('a log that has dropped its start: what it has left is held', async () => {
    const server = await LmcacheServer.start('--log-size=3');
    const names = ['a', 'b', 'c', 'd', 'e'];
    await server.store(...names.map((name) => chunk(name)));
    const follower = await Follower.of(server.endpoint);
    await follower.holds(['c', 'd', 'e'].map((name) => `m ${hashOf(name)}`));
    expect(follower.source.counters.lost_messages).toBe(0);
  });

  test('a link that breaks: what came and went meanwhile is known when it is back', async () => {
    const server = await LmcacheServer.start();
    const forwarder = await Forwarder.to(server.port);
    await server.store(chunk('a'), chunk('b'));
    const follower = await Follower.of(`tcp://127.0.0.1:${forwarder.port}`);
    await follower.holds(server.held);
    const { received } = follower.source.counters;
    forwarder.freeze();
    forwarder.cut();
    await server.evict('m', hashOf('a'));
    await server.store(chunk('c'));
    forwarder.thaw();
    await follower.holds(server.held);
    // From where it was, and not the whole log again.
    const { counters } = follower.source;
    expect([counters.received - received, counters.restarts]).toEqual([2, 0]);
  });

  test('a cursor that the log has left behind meanwhile is a loss', async () => {
    const server = await LmcacheServer.start('--log-size=3');
    const forwarder = await Forwarder.to(server.port);
    await server.store(chunk('a'), chunk('b'));
    const follower = await Follower.of(`tcp://127.0.0.1:${forwarder.port}`);
    await follower.holds(server.held);
    forwarder.freeze();
    forwarder.cut();
    await server.evict('m', hashOf('a'));
    await server.store(...['c', 'd', 'e', 'f'].map((name) => chunk(name)));
    forwarder.thaw();
    await follower.holds(['d', 'e', 'f'].map((name) => `m ${hashOf(name)}`));
    expect(follower.source.counters.lost_messages).toBe(1);
  });

  test('a subscription that is ended comes again; pings keep it', { timeout: 60_000 }, async () => {
    const server = await LmcacheServer.start();
    const follower = await Follower.of(server.endpoint, '--lmcache-stream-instance=12345678901');
    await server.store(chunk('a'));
    await follower.holds(server.held);
    await server.reap(0.001);
    await server.store(chunk('b'));
    await follower.holds(server.held);
    await until(async () => (await server.pings()).includes(12_345_678_901), 'a ping');
    await server.reap(15);
    await server.store(chunk('c'));
    await follower.holds(server.held);
    expect(follower.source.counters).toMatchObject({ malformed: 0, restarts: 0 });
  });

  test('a server that records nothing is shown with what to do', async () => {
    const server = await LmcacheServer.start('--log-size=0');
    const follower = await Follower.of(server.endpoint);
    const notices = (): string => JSON.stringify(follower.source.degraded);
    await until(() => notices().includes('records no KV events (m)'), 'the notice');
    expect(notices()).toContain('--kv-event-log-size');
    expect(follower.worker.ready().ready).toBe(true);
  });
});
