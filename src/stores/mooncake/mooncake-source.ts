/**
 * MooncakeSource: a Mooncake Store beside the engine: its event socket, its master's admin port, and what
 * follows both.
 */
import type { Warner } from '../../log.ts';
import { SourceMetrics } from '../../metrics/source-metrics.ts';
import type { ObjectScope } from '../objects/object-change.ts';
import type { ObjectState } from '../objects/object-state.ts';
import { SYSTEM_STORE_CLOCK } from '../store-clock.ts';
import type { SourceNotice, SourceReading, StoreSource } from '../store-source.ts';
import { MasterClient } from './master-client.ts';
import { MooncakeFollower } from './mooncake-follower.ts';
import { MOONCAKE } from './mooncake-view.ts';
import { MooncakeSubscriber } from './subscriber.ts';

export interface MooncakeSourceOptions {
  /** Event socket to connect to. */
  readonly endpoint: string;
  /** URL of the admin port without a trailing slash; null: nobody can be asked. */
  readonly master: string | null;
  readonly reconcileSeconds: number;
  readonly maxHeldBytes: number;
  readonly state: ObjectState;
  readonly warner: Pick<Warner, 'warn'>;
  readonly onLink: (isConnected: boolean) => void;
}

export class MooncakeSource implements StoreSource {
  readonly name: string = MOONCAKE;
  readonly metrics: SourceMetrics = new SourceMetrics();
  readonly #options: MooncakeSourceOptions;
  readonly #master: MasterClient | null;
  readonly #follower: MooncakeFollower;
  readonly #subscriber: MooncakeSubscriber;

  constructor(options: MooncakeSourceOptions) {
    const { endpoint, master, reconcileSeconds, maxHeldBytes, state, warner, onLink } = options;
    const { metrics } = this;
    this.#options = options;
    this.#master = master === null ? null : new MasterClient(master);
    const follower = new MooncakeFollower({
      state,
      metrics,
      clock: SYSTEM_STORE_CLOCK,
      master: this.#master,
      reconcileEveryMs: reconcileSeconds * 1000,
      maxHeldBytes,
      warner,
    });
    this.#follower = follower;
    this.#subscriber = new MooncakeSubscriber(
      {
        endpoint,
        onMessage: (sequence, payload) => follower.view.take(sequence, payload),
        onMalformed: () => follower.view.takeUnreadable(),
        onLink: (isConnected) => {
          onLink(isConnected);
          follower.takeLink(isConnected);
        },
      },
      metrics,
    );
  }

  get isConnected(): boolean {
    return this.#subscriber.isConnected;
  }

  get isSuspect(): boolean {
    return this.#follower.view.isSuspect;
  }

  owns({ source }: ObjectScope): boolean {
    return source === MOONCAKE;
  }

  start(): void {
    this.#follower.start();
    this.#subscriber.start();
  }

  async stop(): Promise<void> {
    await this.#subscriber.stop();
    this.#master?.stop();
    await this.#follower.stop();
  }

  reading(): SourceReading {
    const { endpoint, master } = this.#options;
    const { view } = this.#follower;
    const atMs = this.#subscriber.lastMessageAtMs;
    return {
      endpoint,
      lastSequence: view.lastSequence,
      lastMessageAgeMs: atMs === null ? null : Math.round(performance.now() - atMs),
      heldMessages: view.heldMessages,
      reconciliation: master === null ? null : this.#follower.reconciliation(master),
      notices: [...this.#linkNotices(), ...this.#follower.notices()],
    };
  }

  #linkNotices(): SourceNotice[] {
    if (this.isConnected) return [];
    return [
      {
        message: "No connection to the store's event socket",
        remedy:
          'Check that the master runs with --enable_kv_events=true and publishes on ' +
          '--mooncake-endpoint',
      },
    ];
  }
}
