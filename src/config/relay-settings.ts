/** Settings of the relay itself: who it is to a router, what it keeps, and how it leaves. */
import type { ZmqAddress } from './addresses.ts';
import { choice, integer, pathPart, toggle, workerIdKind, zmqAddress } from './kinds.ts';
import type { SettingRows } from './setting.ts';

/** Above it Dynamo caps the deadline, and so does kvrelay. */
export const MAX_BATCHING_TIMEOUT_MS = 15_000;

const EVENT_PLANES = ['zmq', 'nats', 'none'] as const;
export type EventPlane = (typeof EVENT_PLANES)[number];

const COMPAT_MODES = ['safe', 'strict'] as const;
export type CompatMode = (typeof COMPAT_MODES)[number];

export interface RelaySettings {
  /** Null: `auto` with discovery, drawn at random without. */
  readonly workerId: bigint | 'auto' | null;
  readonly namespace: string;
  readonly component: string;
  readonly endpoint: string;
  readonly batchingTimeoutMs: number;
  readonly maxBatchBlocks: number;
  readonly maxMessageBytes: number;
  readonly eventPlane: EventPlane;
  readonly planeEndpoint: ZmqAddress;
  readonly outboxBytes: number;
  readonly maxTrackedBlocks: number;
  readonly indexer: boolean;
  readonly eventBuffer: number;
  readonly eventBufferBytes: number;
  readonly compat: CompatMode;
}

const ENDPOINT_REMEDY =
  'Give the name the router looks for, only this part of namespace.component.endpoint';

export const relaySettings: SettingRows<RelaySettings> = {
  workerId: {
    flag: '--worker-id',
    environment: 'KVRELAY_WORKER_ID',
    kind: workerIdKind,
    fallback: null,
    fallbackNote: 'auto with discovery, else random with 53 bits',
    help: 'Worker id in every router event; auto: of the worker that discovery shows',
    remedy: 'Give the id the router knows this worker by, or leave it out',
  },
  namespace: {
    flag: '--namespace',
    environment: 'DYN_NAMESPACE',
    kind: pathPart,
    fallback: 'dynamo',
    help: 'Namespace of the KV-state endpoint',
    remedy: ENDPOINT_REMEDY,
  },
  component: {
    flag: '--component',
    environment: 'DYN_COMPONENT',
    kind: pathPart,
    fallback: 'backend',
    help: 'Component of the KV-state endpoint',
    remedy: ENDPOINT_REMEDY,
  },
  endpoint: {
    flag: '--endpoint',
    environment: 'DYN_ENDPOINT',
    kind: pathPart,
    fallback: 'generate',
    help: 'Name of the KV-state endpoint',
    remedy: ENDPOINT_REMEDY,
  },
  batchingTimeoutMs: {
    flag: '--batching-timeout-ms',
    environment: 'KVRELAY_BATCHING_TIMEOUT_MS',
    kind: {
      ...integer(0, Number.MAX_SAFE_INTEGER, 'MS'),
      allowed: `an integer from 0 to ${MAX_BATCHING_TIMEOUT_MS}, larger ones are capped`,
    },
    fallback: '0',
    help: 'How long events may wait to be merged; 0: until the engine message they came in ends',
    remedy: 'Give 0 unless routers get more messages than they can take',
  },
  maxBatchBlocks: {
    flag: '--max-batch-blocks',
    environment: 'KVRELAY_MAX_BATCH_BLOCKS',
    kind: integer(1, 1_000_000, 'BLOCKS'),
    fallback: '128',
    help: 'Blocks at which a merged event is published',
    remedy: 'Give 128, as Dynamo does, unless a measurement says otherwise',
  },
  maxMessageBytes: {
    flag: '--max-message-bytes',
    environment: 'KVRELAY_MAX_MESSAGE_BYTES',
    kind: integer(1024, 64 * 1024 * 1024, 'BYTES'),
    fallback: '1048576',
    strictLacks: 'splits no event',
    help: "Largest router message; lowered to the NATS server's max_payload",
    remedy: "Give at most the NATS server's max_payload",
  },
  eventPlane: {
    flag: '--event-plane',
    environment: 'DYN_EVENT_PLANE',
    kind: choice(...EVENT_PLANES),
    fallback: 'zmq',
    help: 'Where router events go: a ZMQ socket of this relay, a NATS server, or nowhere',
    remedy: 'Give the plane the router listens on',
  },
  planeEndpoint: {
    flag: '--plane-endpoint',
    environment: 'KVRELAY_PLANE_ENDPOINT',
    kind: zmqAddress,
    fallback: 'tcp://127.0.0.1:5570',
    onlyOnPlane: 'zmq',
    help: 'Address the ZMQ plane binds; port 0: a free one',
    remedy: 'Give an address of this host that routers reach',
  },
  outboxBytes: {
    flag: '--outbox-bytes',
    environment: 'KVRELAY_OUTBOX_BYTES',
    kind: integer(1024, 0x7fff_ffff, 'BYTES'),
    fallback: '67108864',
    help: 'Router messages kept until the plane has confirmed them; the oldest go first',
    remedy: 'Give the memory an outage of the plane may take',
  },
  maxTrackedBlocks: {
    flag: '--max-tracked-blocks',
    environment: 'KVRELAY_MAX_TRACKED_BLOCKS',
    kind: integer(1, 100_000_000, 'BLOCKS'),
    fallback: '8000000',
    strictLacks: 'tracks blocks without a bound',
    help: 'Block hashes counted against repeats; further ones pass uncounted',
    remedy: 'Give more than the blocks the engine can hold, all tiers together',
  },
  indexer: {
    flag: '--no-indexer',
    environment: 'KVRELAY_INDEXER',
    kind: toggle,
    fallback: 'on',
    help: 'Keep no local index of the published blocks (environment: off)',
    remedy: 'Turn it off only where nothing asks this relay for its blocks',
  },
  eventBuffer: {
    flag: '--event-buffer',
    environment: 'KVRELAY_EVENT_BUFFER',
    kind: integer(1, 4_194_304, 'EVENTS'),
    fallback: '16384',
    help: 'Newest router events of a rank that are kept for those who missed some',
    remedy: 'Give the events that pass while a router is away; beyond them it gets a dump',
  },
  eventBufferBytes: {
    flag: '--event-buffer-bytes',
    environment: 'KVRELAY_EVENT_BUFFER_BYTES',
    kind: integer(1024, 0x7fff_ffff, 'BYTES'),
    fallback: '33554432',
    help: 'Most bytes that these events take, a rank',
    remedy: 'Give the memory that kept events may take',
  },
  compat: {
    flag: '--compat',
    environment: 'KVRELAY_COMPAT',
    kind: choice(...COMPAT_MODES),
    fallback: 'safe',
    help: "safe, or strict: Dynamo's bytes with its defects and losses",
    remedy: 'Give safe unless every byte must be as Dynamo writes it',
  },
};
