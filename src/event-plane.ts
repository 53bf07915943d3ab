/** An event plane as the configuration has it, for one publisher and one topic. */
import type { WorkerConfig } from './config/worker-config.ts';
import { advertisedEndpoint } from './connections/advertised-endpoint.ts';
import { NatsConnection } from './connections/nats.ts';
import { natsClientOptions } from './connections/nats-access.ts';
import { assertInvariant, messageOf } from './errors.ts';
import type { Warner } from './log.ts';
import type { PlaneMetrics } from './metrics/relay-metrics.ts';
import { endpointSubject } from './protocol/discovery-keys.ts';
import { NatsPlane } from './sinks/nats.ts';
import { NonePlane } from './sinks/none.ts';
import type { Plane, PlaneListener } from './sinks/plane.ts';
import { ZmqPlane } from './sinks/zmq.ts';

export interface EventPlaneOptions {
  readonly topic: string;
  /** Where the ZMQ plane binds. */
  readonly endpoint: string;
  readonly publisherId: number;
  /** Shared by all planes; null where they are not NATS. */
  readonly nats: NatsConnection | null;
  readonly metrics: PlaneMetrics;
  readonly outboxBytes: number;
  readonly lingerMs: number;
  /** Unconfirmed messages go again after a reconnect of NATS. */
  readonly resends: boolean;
  readonly onEvent: PlaneListener;
}

export function createEventPlane(config: WorkerConfig, options: EventPlaneOptions): Plane {
  if (config.eventPlane === 'none') return new NonePlane();
  const { topic, metrics, nats } = options;
  const subject = endpointSubject(config, topic);
  if (config.eventPlane === 'zmq') {
    const brokers = config.zmqBroker ?? [];
    const advertise = (bound: string): string => advertisedEndpoint(bound, config.eventPlaneHost);
    const ownTopic = brokers.length === 0 ? topic : subject;
    return new ZmqPlane({ ...options, brokers, topic: ownTopic, advertise }, metrics);
  }
  assertInvariant(nats !== null, 'the NATS plane has no connection');
  const { natsServer: servers, natsResumeDelayMs: resumeDelayMs } = config;
  return new NatsPlane({ ...options, subject, servers, resumeDelayMs }, nats, metrics);
}

/** The one connection of all planes, and of router queries where they go over NATS. */
export function createNats(config: WorkerConfig, warner: Pick<Warner, 'warn'>): NatsConnection {
  return new NatsConnection({
    client: natsClientOptions(config.natsServer, config),
    startupTimeoutMs: config.natsStartupConnectTimeoutSeconds * 1000,
    onError: (error) =>
      warner.warn('plane_error', { reason: messageOf(error) }, 'NATS cannot be reached'),
  });
}
