/**
 * A Mooncake master for tests: publishes what it is told to, and answers its admin port from what it holds.
 * Every operation names the key's tenant as `default`.
 */
import { onTestFinished } from 'vitest';
import { EngineStub } from './engine-stub.ts';
import { startHttpStub } from './http-stub.ts';
import { type EventFields, mooncakeEvent, mooncakeFrames } from './mooncake-messages.ts';

export class MooncakeMasterStub {
  /** Media by key, as the master itself knows them. */
  readonly held: Map<string, Set<string>> = new Map();
  sequence = 0;
  eventId = 0;
  status: Record<string, unknown> = {};
  /** Awaited while an answer to a batch query, already made, is on its way. */
  beforeAnswer: (keys: readonly string[]) => Promise<void> | void = () => undefined;
  /** Answers every request with 503. */
  isStandby = false;
  requests: readonly string[] = [];
  address = '';
  #stub: EngineStub | null = null;

  static async start(endpoint?: string): Promise<MooncakeMasterStub> {
    const master = new MooncakeMasterStub();
    await master.#serve();
    await master.publishAt(endpoint);
    onTestFinished(() => master.stopPublishing());
    return master;
  }

  get endpoint(): string {
    return this.#stub?.endpoint ?? '';
  }

  get url(): string {
    return `http://${this.address}`;
  }

  async publishAt(endpoint?: string): Promise<void> {
    this.#stub = await EngineStub.start(endpoint);
  }

  stopPublishing(): void {
    this.#stub?.close();
    this.#stub = null;
  }

  async subscribed(): Promise<void> {
    await this.#stub?.subscribed();
  }

  /** One message with these events, each with the next id. */
  async publish(...events: readonly EventFields[]): Promise<void> {
    await this.#stub?.send(mooncakeFrames(++this.sequence, events));
  }

  event(type: 'stored' | 'removed' | 'cleared', key = '', fields: EventFields = {}): EventFields {
    const own = type === 'cleared' ? {} : { object_key: key };
    return mooncakeEvent(type, ++this.eventId, { ...own, ...fields });
  }

  /** Holds it, and says so unless `isTold` is false. */
  async put(key: string, medium = 'cpu', isTold = true): Promise<void> {
    const media = this.held.get(key) ?? new Set();
    this.held.set(key, media.add(medium));
    if (isTold) await this.publish(this.event('stored', key, { medium }));
  }

  /** Numbers of messages that nobody gets. */
  lose(count: number): void {
    this.sequence += count;
  }

  restart(): void {
    this.sequence = 0;
    this.eventId = 0;
    this.held.clear();
  }

  async #serve(): Promise<void> {
    const stub = await startHttpStub({
      '/get_all_keys': (response) => {
        if (this.isStandby) response.writeHead(503).end('{}');
        else response.end([...this.held.keys()].map((key) => `${key}\n`).join(''));
      },
      '/batch_query_keys': async (response, url) => {
        const keys = (url.searchParams.get('keys') ?? '').split(',');
        const data = this.#answer(keys);
        await this.beforeAnswer(keys);
        if (this.isStandby) response.writeHead(503).end('{}');
        else response.end(JSON.stringify({ success: true, data }));
      },
      '/kv_events/status': (response) => {
        response.end(
          JSON.stringify({
            enabled: true,
            published_batches: this.sequence,
            published_events: this.eventId,
            dropped_events: 0,
            skipped_keyless_events: 0,
            ...this.status,
          }),
        );
      },
    });
    this.address = stub.address;
    this.requests = stub.requests;
  }

  #answer(keys: readonly string[]): object {
    const entries = keys.map((key) => {
      const media = this.held.get(key);
      if (media === undefined) return [key, { ok: false, error: 'OBJECT_NOT_FOUND' }];
      const of = (name: string): object[] | null => (media.has(name) ? [{}] : null);
      return [
        key,
        {
          ok: true,
          error: null,
          values: of('cpu'),
          disk_values: null,
          local_disk_values: of('disk'),
          nof_values: of('nof'),
        },
      ];
    });
    return Object.fromEntries(entries);
  }
}
