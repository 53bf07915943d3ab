/** Trials of worker load: what routers are told of how full the engine is, and when they are not. */
import { unpack } from 'msgpackr';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { WorkerLoadStatus } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { servePage, vllmPage } from '../support/engine-page.ts';
import { EngineStub } from '../support/engine-stub.ts';
import { natsServerAvailable, startNatsServer } from '../support/nats-server.ts';
import { eventually, NatsCollector, ZmqCollector } from '../support/plane-collector.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { f, St } from '../support/trials.ts';
import { configOf } from '../support/worker-config.ts';

const SUBJECT = 'namespace.dynamo.component.backend.endpoint.generate.kv_metrics';

async function startWorker(...flags: string[]): Promise<Worker> {
  const engine = await EngineStub.start();
  const given = ['--engine-endpoint', engine.endpoint, '--block-size', '4', '--worker-id', '7'];
  const config = configOf(...given, '--http', 'off', ...flags);
  const worker = createWorker(config, {
    logger: createLogger({ level: 'silent', format: 'json' }),
  });
  onTestFinished(async () => {
    await worker.stop();
    engine.close();
  });
  await worker.start();
  return worker;
}

function loadOf(worker: Worker): WorkerLoadStatus {
  const { worker_load } = worker.status();
  if (worker_load === null) throw new Error('no load is published');
  return worker_load;
}

function event(dp_rank: number, kv_used_blocks: number): Record<string, unknown> {
  return {
    worker_id: 7,
    dp_rank,
    active_decode_blocks: null,
    active_prefill_tokens: null,
    kv_used_blocks,
  };
}

describe('O9: each field of the load has one meaning, and unknown is nil', () => {
  test('on the ZMQ plane: a publisher of its own, topic kv_metrics, one map a message', async () => {
    let page = vllmPage({ 0: 0.25, 1: 0 }, '800');
    const url = await servePage((_, response) => response.end(page));
    const ranks = ['--dp-size', '2', '--engine-sockets', 'shared'];
    const plane = ['--plane-endpoint', 'tcp://127.0.0.1:0'];
    const worker = await startWorker('--engine-metrics', url, ...ranks, ...plane);
    const router = new ZmqCollector(loadOf(worker).plane_endpoint ?? '');
    onTestFinished(() => router.close());
    await router.subscribed();
    const received = (): ReturnType<typeof event>[] =>
      router.frames.map((frames) => {
        const envelope = unpack((frames[3] as Buffer).subarray(5));
        expect(envelope.sequence).toBe(Number(frames[2]?.readBigUInt64BE()));
        return unpack(envelope.payload);
      });
    page = vllmPage({ 0: 0.5, 1: 0.75 }, '800');
    await eventually(() => loadOf(worker).ranks[1]?.kv_used_blocks === 300);
    await eventually(() => received().some(({ kv_used_blocks }) => kv_used_blocks === 300));

    const [topic, publisher, , body] = router.frames[0] as Buffer[];
    expect(topic?.toString()).toBe('kv_metrics');
    expect(publisher?.readBigUInt64BE().toString()).toBe(loadOf(worker).publisher_id);
    expect(worker.status().ranks.map(({ publisher_id }) => publisher_id)).not.toContain(
      loadOf(worker).publisher_id,
    );
    expect(body?.readUInt32BE(1)).toBe((body?.length ?? 0) - 5);
    expect(received().slice(-2)).toEqual([event(0, 200), event(1, 300)]);
    expect(loadOf(worker).ranks).toEqual([
      { dp_rank: 0, kv_used_blocks: 200 },
      { dp_rank: 1, kv_used_blocks: 300 },
    ]);
  });

  test.skipIf(!natsServerAvailable())('on NATS: the subject of the endpoint', async () => {
    const server = await startNatsServer();
    onTestFinished(() => server.stop());
    const routers = await NatsCollector.connect(server.url);
    onTestFinished(() => routers.close());
    const url = await servePage((_, response) => response.end(vllmPage({ 0: 0.25 }, '400')));
    const nats = ['--event-plane', 'nats', '--nats-server', server.url];
    await startWorker('--engine-metrics', url, ...nats);
    await eventually(() => routers.on(SUBJECT).length > 0);
    const [first] = routers.on(SUBJECT);
    expect(first?.sequence).toBe(0);
    expect(unpack(unpack(first?.envelope as Uint8Array).payload)).toEqual(event(0, 100));
  });

  test('a page that cannot be had holds no event back and no worker unready', async () => {
    const url = await servePage((_, response) => response.writeHead(503).end());
    const trial = await SocketTrial.start({ flags: ['--engine-metrics', url] });
    await trial.send(f(0, [St(101)]));
    expect(await trial.output(1)).toEqual(['S#1(∅→101)']);
    expect(trial.worker.ready().ready).toBe(true);
    expect(loadOf(trial.worker).ranks).toEqual([{ dp_rank: 0, kv_used_blocks: null }]);
    const faults = await trial.metric('kvrelay_engine_scrape_faults_total', { reason: 'status' });
    expect(faults[0]).toBeGreaterThan(0);
    expect(await trial.metric('kvrelay_load_messages_total')).toEqual([0]);
  });

  test('without --engine-metrics there is no load, no series and no address for it', async () => {
    const trial = await SocketTrial.start();
    expect(trial.worker.status().worker_load).toBeNull();
    expect(await trial.metric('kvrelay_load_messages_total')).toEqual([]);
  });
});
