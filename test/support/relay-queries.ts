/**
 * Queries of a whole relay as a stock router asks them, and what a router holds that believes the answers.
 *
 *   await query(status)        everything       await query(status, 5)    from event id 5
 */
import { Unpackr } from 'msgpackr';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { FakeRouter } from './fake-router.ts';
import { eventsIn, modelEventOf, type PublishedEvent, tierSuffix } from './published-events.ts';
import { RouterIndexModel } from './router-index-model.ts';

export interface QueryAnswer {
  /** `TreeDump`, `Events`, `TooNew`, … */
  readonly kind: string;
  readonly lastEventId: number | null;
  readonly events: readonly PublishedEvent[];
}

type WireAnswer = Record<string, { events?: unknown[]; last_event_id?: number | bigint }>;

const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true });

/** What the relay answers a router that asks from an event id on; null: for everything. */
export async function query(
  status: StatusSnapshot,
  startEventId: number | null = null,
  dpRank = 0,
): Promise<QueryAnswer> {
  const rank = status.ranks.find(({ dp_rank }) => dp_rank === dpRank);
  const { namespace, component } = status.settings;
  const place = `${String(namespace)}/${String(component)}`;
  const workerId = BigInt(rank?.worker_id ?? 0);
  const publisherHex = BigInt(rank?.publisher_id ?? 0).toString(16);
  const source = `worker_kv_query_source_${publisherHex}`;
  const path = `${workerId.toString(16)}/${place}/${source}`;
  const port = Number(status.recovery?.endpoint?.split(':').at(-1));
  const router = await FakeRouter.start();
  try {
    const start_event_id = startEventId === null ? null : BigInt(startEventId);
    const fields = { worker_id: workerId, dp_rank: dpRank, start_event_id };
    const { acknowledgement, response } = await router.ask(port, path, fields);
    const body = response?.messages.find(({ body: { length } }) => length > 0)?.body;
    if (body === undefined) throw new Error(`no answer: ${acknowledgement}`);
    return answerOf(body);
  } finally {
    await router.close();
  }
}

/** The answer in the first data message of a response stream. */
function answerOf(body: Uint8Array): QueryAnswer {
  const { data } = unpackr.unpack(body) as { data: WireAnswer };
  const [[kind, fields] = ['nothing', {}]] = Object.entries(data);
  const { last_event_id, events = [] } = fields;
  const lastEventId = last_event_id === undefined ? null : Number(last_event_id);
  return { kind, lastEventId, events: eventsIn(events) };
}

/** A router that follows one rank by its events and by answers. */
export class FollowingRouter {
  /** Id of the event applied last. */
  cursor = 0;
  #model = new RouterIndexModel();

  /** False where it shows a hole: it is not applied, and the hole has to be asked for. */
  take(event: PublishedEvent): boolean {
    const id = Number(event.id);
    if (id > this.cursor + 1) return false;
    if (id <= this.cursor) return true;
    this.#model.apply(modelEventOf(event));
    this.cursor = id;
    return true;
  }

  believe({ kind, lastEventId, events }: QueryAnswer): void {
    if (kind === 'TreeDump') {
      this.#model = new RouterIndexModel();
      for (const event of events) this.#model.apply(modelEventOf(event));
    } else if (kind === 'Events') {
      for (const event of events) this.take(event);
    } else throw new Error(`no use for an answer ${kind}`);
    this.cursor = Math.max(this.cursor, lastEventId ?? 0);
  }

  /** `101`, or `101@disk`, sorted. */
  get held(): string[] {
    return this.#model
      .rows()
      .map(([tier, , hash]) => `${hash}${tierSuffix(String(tier))}`)
      .sort();
  }
}

/** What a router holds that has just joined. */
export async function heldByNewcomer(status: StatusSnapshot, dpRank = 0): Promise<string[]> {
  const router = new FollowingRouter();
  router.believe(await query(status, null, dpRank));
  return router.held;
}
