/**
 * A worker beside a Mooncake store alone, and what a consumer sees of it: the object stream, the listing.
 *
 *   St('a')   Rm('a', 'disk')   Clr('t1')   one event each; `send()` makes a message of some
 *
 * The stream is shown as `a cpu`, `a cpu,disk`, `a -` where it is gone, `default cleared (invalidated)`.
 */
import { unpack } from 'msgpackr';
import { onTestFinished } from 'vitest';
import { createLogger } from '../../src/log.ts';
import type { ObjectEvent } from '../../src/protocol/object-event.ts';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { createWorker, type Worker } from '../../src/worker.ts';
import { parseExposition } from '../metrics/exposition.ts';
import { MooncakeMasterStub } from './mooncake-master-stub.ts';
import type { EventFields } from './mooncake-messages.ts';
import { eventually, ZmqCollector } from './plane-collector.ts';
import { configOf } from './worker-config.ts';

type ToEvent = (master: MooncakeMasterStub) => EventFields;

export function St(key: string, medium = 'cpu', tenant_id = 'default'): ToEvent {
  return (master) => master.event('stored', key, { medium, tenant_id });
}

export function Rm(key: string, medium = 'cpu', tenant_id = 'default'): ToEvent {
  return (master) => master.event('removed', key, { medium, tenant_id });
}

export function Clr(tenant_id = 'default'): ToEvent {
  return (master) => master.event('cleared', '', { tenant_id });
}

export interface StoreTrialOptions {
  readonly hasMaster?: boolean;
  readonly flags?: readonly string[];
}

export class StoreTrial {
  readonly master: MooncakeMasterStub;
  readonly worker: Worker;
  readonly #collector: ZmqCollector;

  private constructor(master: MooncakeMasterStub, worker: Worker, collector: ZmqCollector) {
    this.master = master;
    this.worker = worker;
    this.#collector = collector;
  }

  static async start(options: StoreTrialOptions = {}): Promise<StoreTrial> {
    const { hasMaster = false, flags = ['--engine', 'none'] } = options;
    const master = await MooncakeMasterStub.start();
    const ask = hasMaster ? ['--mooncake-master', master.url] : [];
    const served = ['--plane-endpoint', 'tcp://127.0.0.1:0', '--http', '127.0.0.1:0'];
    const at = ['--mooncake-endpoint', master.endpoint];
    const config = configOf(...served, ...at, ...ask, ...flags);
    const logger = createLogger({ level: 'silent', format: 'json' });
    const worker = createWorker(config, { logger });
    onTestFinished(() => worker.stop());
    await worker.start();
    const collector = new ZmqCollector(worker.status().objects?.plane_endpoint ?? '');
    onTestFinished(() => collector.close());
    await collector.subscribed();
    await master.subscribed();
    return new StoreTrial(master, worker, collector);
  }

  get url(): string {
    return this.worker.httpUrl ?? '';
  }

  get source(): StatusSnapshot['sources'][number] {
    const [source] = this.worker.status().sources;
    if (source === undefined) throw new Error('no source');
    return source;
  }

  async send(...events: readonly ToEvent[]): Promise<void> {
    await this.master.publish(...events.map((toEvent) => toEvent(this.master)));
  }

  async until(condition: () => boolean, what = 'the condition', timeoutMs?: number): Promise<void> {
    if (await eventually(condition, timeoutMs)) return;
    throw new Error(`${what} did not come; the stream: ${this.shown.join('; ')}`);
  }

  /** Events of the stream, as a consumer decodes them. */
  get events(): ObjectEvent[] {
    return this.#collector.published.flatMap(
      ({ payload }) => (unpack(payload) as { events: ObjectEvent[] }).events,
    );
  }

  get shown(): string[] {
    return this.events.map(({ type, tenant_id, object_key, media = [], cause }) =>
      type === 'cleared'
        ? `${tenant_id} cleared (${cause})`
        : `${object_key} ${media.join() || '-'}`,
    );
  }

  /** Waits until the stream has so many events. */
  async stream(count: number): Promise<string[]> {
    await this.until(() => this.events.length >= count, `event ${count}`);
    return this.shown;
  }

  /** `key media`, or with `tenant/` in front of it where it is not the default one. */
  async listed(query = ''): Promise<string[]> {
    const text = await (await fetch(`${this.url}/api/objects${query}`)).text();
    const rows = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Required<ObjectEvent>);
    return rows
      .map(({ tenant_id, object_key, media }) => {
        const tenant = tenant_id === 'default' ? '' : `${tenant_id}/`;
        return `${tenant}${object_key} ${media.join()}`;
      })
      .sort();
  }

  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const sample = parseExposition(text).find(
      (one) =>
        one.name === name &&
        Object.entries(labels).every(([label, value]) => one.labels[label] === value),
    );
    return sample?.value ?? Number.NaN;
  }
}
