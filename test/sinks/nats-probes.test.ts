/** What a PONG says of: no server can be made to answer just when it matters, so the connection is played. */
import { expect, onTestFinished, test } from 'vitest';
import type { NatsConnection, NatsListener } from '../../src/connections/nats.ts';
import { PlaneTrial } from '../support/nats-planes.ts';
import { eventually } from '../support/plane-collector.ts';

class PlayedConnection {
  isConnected = true;
  canWrite = true;
  maxPayloadBytes = 1 << 20;
  disconnects = 0;
  connects = 1;
  /** On the link that stands. */
  writes = 0;
  pongs: (() => void)[] = [];
  #listener: NatsListener | null = null;

  listen(listener: NatsListener): void {
    this.#listener = listener;
  }

  write(): boolean {
    this.writes++;
    return true;
  }

  confirm(): Promise<void> {
    return new Promise((resolve) => this.pongs.push(resolve));
  }

  /** A new link at once; answers of the old one are not awaited any more. */
  relink(): void {
    this.pongs = [];
    this.writes = 0;
    this.#listener?.onDisconnected();
    this.#listener?.onConnected(false);
  }
}

test.each([true, false])(
  'A probe in the pause behind a reconnect confirms nothing that is written later; resends: %s',
  async (resends) => {
    const connection = new PlayedConnection();
    const options = { subject: 'a', resends, resumeDelayMs: 400 };
    const trial = new PlaneTrial(options, connection as unknown as NatsConnection);
    const { plane } = trial;
    onTestFinished(() => plane.stop(0));
    trial.publish(1);
    expect(await eventually(() => connection.writes > 0)).toBe(true);
    connection.relink();
    trial.publish(1);
    const waiting = plane.outboxMessages;
    expect(waiting).toBeGreaterThan(0);
    // The probe timer of the old link fires within the pause.
    expect(await eventually(() => connection.pongs.length > 0 || connection.writes > 0)).toBe(true);
    const early = connection.pongs.splice(0);
    expect(await eventually(() => connection.writes > 0)).toBe(true);
    for (const pong of early) pong();
    await new Promise(setImmediate);
    expect(plane.outboxMessages).toBe(waiting);
    expect(await eventually(() => connection.pongs.length > 0)).toBe(true);
    for (const pong of connection.pongs) pong();
    expect(await eventually(() => plane.outboxMessages === 0)).toBe(true);
  },
);
