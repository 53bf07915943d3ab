/**
 * RelayProcess: one process of kvrelay, built of the real parts as src/worker.ts builds it.
 *
 * Real     Relay with its pipeline, index, hold and outbox; the recovery service, the presence.
 * Played   the connection to NATS, the sockets of queries and answers, the registry.
 */
import type { WorkerConfig } from '../../src/config/worker-config.ts';
import type { NatsConnection } from '../../src/connections/nats.ts';
import { SLICING, type Slicing } from '../../src/indexer/dump-builder.ts';
import { DiscoveryMetrics } from '../../src/metrics/discovery-metrics.ts';
import { createRecovery } from '../../src/recovery.ts';
import { Relay } from '../../src/relay.ts';
import { Presence } from '../../src/router/presence.ts';
import type { RecoveryService } from '../../src/router/recovery/recovery-service.ts';
import type { Random } from './random.ts';
import { RelayWatch } from './relay-watch.ts';
import { SimulatedNats } from './simulated-nats.ts';
import type { SimulatedNet } from './simulated-net.ts';
import type { RegistryClient, SimulatedRegistry } from './simulated-registry.ts';
import type { VirtualClock } from './virtual-clock.ts';

const MAX_PAYLOAD_BYTES = 1 << 20;

export const silent = { warn: (): void => undefined, info: (): void => undefined };

export interface ProcessPorts {
  readonly config: WorkerConfig;
  readonly clock: VirtualClock;
  readonly net: SimulatedNet;
  readonly registry: SimulatedRegistry;
  readonly random: Random;
  readonly deliver: (envelope: Uint8Array) => void;
  readonly onSuperseded: (rank: number) => void;
  readonly log: (text: string) => void;
}

export class RelayProcess {
  readonly nats: SimulatedNats;
  readonly relays: readonly Relay[];
  /** By rank. */
  readonly watches: readonly RelayWatch[];
  readonly #net: SimulatedNet;
  readonly #recovery: RecoveryService | null;
  readonly #registry: RegistryClient;
  readonly #presence: Presence;
  #isDead = false;

  constructor({ config, clock, net, registry, random, deliver, onSuperseded, log }: ProcessPorts) {
    this.#net = net;
    this.nats = new SimulatedNats(clock, random.fork('nats'), MAX_PAYLOAD_BYTES, deliver);
    const nats = this.nats as unknown as NatsConnection;
    this.relays = Array.from(
      { length: config.dpSize },
      (_, dpRank) =>
        new Relay({
          config,
          dpRank,
          warner: silent,
          onPlaneChange: () => undefined,
          onResync: () => {
            log(`rank ${dpRank} is announced anew`);
            this.#presence.renewRank(dpRank);
          },
          nats,
          isRecoverable: () => this.#presence.isRecoverable(dpRank),
        }),
    );
    this.watches = this.relays.map(
      (relay) => new RelayWatch(relay, clock, () => onSuperseded(relay.dpRank)),
    );
    this.#recovery = createRecovery(this.relays, { config, nats, warner: silent });
    this.#registry = registry.client();
    const { namespace, component, endpoint, workerId, onAmbiguous, blockSize } = config;
    this.#presence = new Presence({
      discovery: this.#registry,
      endpoint: { namespace, component, endpoint },
      workerId,
      onAmbiguous,
      blockSize,
      host: 'a-host',
      load: null,
      sources: this.relays,
      recovery: this.#recovery,
      metrics: new DiscoveryMetrics(),
      warner: silent,
      onWorker: () => undefined,
    });
  }

  start(): void {
    this.nats.start();
    void this.#announce();
  }

  /** Nothing is flushed, and what was under way is lost; `isSilent`: nobody is told either. */
  kill(isSilent: boolean): void {
    this.#isDead = true;
    this.nats.kill();
    this.#registry.kill();
    this.#net.killProcess(isSilent);
    void this.#recovery?.stop();
    // Gives the kernel its memory back; no message can leave any more.
    for (const relay of this.relays) void relay.stop(0);
  }

  async #announce(): Promise<void> {
    await this.#recovery?.start();
    if (!this.#isDead) await this.#presence.start();
  }
}

/**
 * Dumps pause behind each of their events from here on, whatever the clock says, as large ones do.
 * `builds` counts those that pause now.
 */
export function sliceDumps(clock: VirtualClock, random: Random, paces: readonly number[]): void {
  const slicing: Slicing = {
    pause: () =>
      new Promise<void>((resolve) => {
        clock.schedule(() => {
          clock.followOn();
          resolve();
        }, random.pick(paces));
      }),
    sliceMs: -1,
    partBytes: 1,
  };
  Object.assign(SLICING, slicing);
}
