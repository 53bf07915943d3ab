/** What the master's own counts tell, look by look, on a clock that the test turns. */
import { expect, test } from 'vitest';
import { MasterError, type PublisherStatus } from '../../../src/stores/mooncake/master.ts';
import { MasterWatch } from '../../../src/stores/mooncake/master-watch.ts';

const LOOK_MS = 10_000;

class Watched {
  status: PublisherStatus | MasterError = statusOf(0);
  seen: bigint | null = null;
  eventId: bigint | null = null;
  restarts = 0;
  /** Seen by the time the answer arrives. */
  overtaken: bigint | null = null;
  readonly told: string[] = [];
  readonly watch: MasterWatch;
  #nowMs = 0;
  #due: (() => void) | null = null;

  constructor() {
    this.watch = new MasterWatch({
      master: {
        list: () => Promise.reject(new Error('not asked')),
        query: () => Promise.reject(new Error('not asked')),
        status: async () => {
          if (this.status instanceof MasterError) throw this.status;
          if (this.overtaken !== null) this.seen = this.overtaken;
          return this.status;
        },
      },
      clock: {
        nowMs: () => this.#nowMs,
        schedule: (callback) => {
          this.#due = callback;
          return () => undefined;
        },
      },
      lastSequence: () => this.seen,
      lastEventId: () => this.eventId,
      restarts: () => this.restarts,
      onRestart: () => this.told.push('restart'),
      onLostTail: () => this.told.push('tail'),
      onFault: ({ fault }) => this.told.push(fault),
    });
  }

  /** One look; what it told, and its notices. */
  async look(status: PublisherStatus | MasterError, seen: bigint | null): Promise<string[]> {
    this.status = status;
    this.seen = seen;
    this.told.length = 0;
    if (this.#due === null) this.watch.start();
    else this.#due();
    this.#nowMs += LOOK_MS;
    await new Promise((resolve) => setImmediate(resolve));
    return [...this.told];
  }

  get messages(): string {
    return this.watch
      .notices()
      .map(({ message, remedy }) => `${message}: ${remedy}`)
      .join('\n');
  }
}

function statusOf(batches: number, fields: Partial<PublisherStatus> = {}): PublisherStatus {
  return {
    enabled: true,
    publishedBatches: batches,
    publishedEvents: batches,
    droppedEvents: 0,
    skippedKeylessEvents: 0,
    ...fields,
  };
}

test('last messages that were lost are told once, at the look after', async () => {
  const watched = new Watched();
  expect(await watched.look(statusOf(5), 5n)).toEqual([]);
  expect(await watched.look(statusOf(7), 5n)).toEqual([]);
  expect(await watched.look(statusOf(7), 5n)).toEqual(['tail']);
  expect(await watched.look(statusOf(7), 5n)).toEqual([]);
  expect(await watched.look(statusOf(9), 5n)).toEqual([]);
  expect(await watched.look(statusOf(9), 5n)).toEqual(['tail']);
});

test('messages on their way are no loss, nor are those before the first', async () => {
  const watched = new Watched();
  await watched.look(statusOf(7), 5n);
  expect(await watched.look(statusOf(12), 7n)).toEqual([]);
  expect(await watched.look(statusOf(12), null)).toEqual([]);
});

test('a dropped event has used a number too', async () => {
  const watched = new Watched();
  const status = statusOf(81, { droppedEvents: 694 });
  await watched.look(status, 775n);
  expect(await watched.look(status, 775n)).toEqual([]);
  expect(watched.messages).toBe('');
});

test('fewer numbers used than seen: the master has restarted', async () => {
  const watched = new Watched();
  expect(await watched.look(statusOf(3), 9n)).toEqual(['restart']);
  expect(await watched.look(statusOf(3, { enabled: false }), 9n)).toEqual([]);
  watched.eventId = 40n;
  expect(await watched.look(statusOf(9, { publishedEvents: 40 }), 9n)).toEqual([]);
  expect(await watched.look(statusOf(9, { publishedEvents: 12 }), 9n)).toEqual(['restart']);
});

test('messages that overtake the answer are no restart', async () => {
  const watched = new Watched();
  watched.overtaken = 12n;
  expect(await watched.look(statusOf(9), 9n)).toEqual([]);
});

test('a life of which nothing was seen behind a restart has a lost tail too', async () => {
  const watched = new Watched();
  expect(await watched.look(statusOf(3), 9n)).toEqual(['restart']);
  expect(await watched.look(statusOf(5), null)).toEqual(['tail']);
  expect(await watched.look(statusOf(5), null)).toEqual(['tail']);
  expect(await watched.look(statusOf(5), null)).toEqual([]);
});

test('a life whose first message showed the restart has a tail of its own, at numbers told before', async () => {
  const watched = new Watched();
  await watched.look(statusOf(13), 12n);
  expect(await watched.look(statusOf(13), 12n)).toEqual(['tail']);
  watched.restarts++;
  expect(await watched.look(statusOf(13), 12n)).toEqual([]);
  expect(await watched.look(statusOf(13), 12n)).toEqual(['tail']);
  expect(await watched.look(statusOf(13), 12n)).toEqual([]);
});

test('each trouble is told with its remedy, and only while it lasts', async () => {
  const watched = new Watched();
  await watched.look(statusOf(0, { enabled: false }), null);
  expect(watched.messages).toMatch(/publishes no KV events.*--enable_kv_events=true/);
  await watched.look(statusOf(0, { skippedKeylessEvents: 4 }), null);
  expect(watched.messages).toMatch(/want of a key: 4.*--kv_events_emit_object_key=true/);
  await watched.look(statusOf(0, { droppedEvents: 3 }), null);
  expect(watched.messages).toMatch(/3 events dropped.*--kv_events_queue_capacity/);
  for (let look = 0; look < 30; look++) await watched.look(statusOf(0, { droppedEvents: 3 }), null);
  expect(watched.messages).toBe('');
  expect(await watched.look(new MasterError('timeout', 'no answer'), null)).toEqual(['timeout']);
  expect(watched.messages).toMatch(/does not answer.*--mooncake-master/);
  await watched.look(statusOf(0), null);
  expect(watched.messages).toBe('');
});
