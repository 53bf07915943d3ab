/** Settings of the engine side: which socket, which ranks, and how its blocks are counted. */
import type { ZmqAddress } from './addresses.ts';
import {
  choice,
  httpUrl,
  integer,
  nonEmptyText,
  text,
  toggle,
  U32_MAX,
  zmqAddress,
} from './kinds.ts';
import type { SettingRows } from './setting.ts';

const ENGINES = ['vllm', 'sglang', 'trtllm', 'none'] as const;
export type EngineName = (typeof ENGINES)[number];

const ENGINE_SOCKETS = ['per-rank', 'shared'] as const;
export type EngineSockets = (typeof ENGINE_SOCKETS)[number];

export interface EngineSettings {
  readonly config: string | null;
  readonly engine: EngineName;
  readonly engineEndpoint: ZmqAddress;
  readonly engineBind: boolean;
  readonly engineSockets: EngineSockets;
  readonly engineTopic: string;
  readonly engineReceiveHwm: number;
  readonly engineMaxMessageBytes: number;
  readonly engineFullReports: boolean;
  /** Metrics page; null: no worker load is published. */
  readonly engineMetrics: string | null;
  readonly dpRank: number;
  readonly dpSize: number;
  readonly blockSize: number;
  readonly imageTokenId: number | null;
  readonly videoTokenId: number | null;
}

export const engineSettings: SettingRows<EngineSettings> = {
  config: {
    flag: '--config',
    environment: null,
    kind: nonEmptyText('FILE'),
    fallback: null,
    help: 'JSON file of settings, its keys the flag names in camelCase',
    remedy: 'Give the path of a JSON file',
  },
  engine: {
    flag: '--engine',
    environment: 'KVRELAY_ENGINE',
    kind: choice(...ENGINES),
    fallback: 'vllm',
    help: 'Engine whose events are relayed; none: stores alone are followed',
    remedy: 'Name the engine this relay stands beside',
  },
  engineEndpoint: {
    flag: '--engine-endpoint',
    environment: 'KVRELAY_ENGINE_ENDPOINT',
    kind: zmqAddress,
    fallback: 'tcp://127.0.0.1:5557',
    help: "Engine's event socket of the first rank; engines add the absolute rank to their port",
    remedy: "Give the address the engine's KV-event publisher uses",
  },
  engineBind: {
    flag: '--engine-bind',
    environment: 'KVRELAY_ENGINE_BIND',
    kind: toggle,
    fallback: 'off',
    help: 'Bind the engine endpoint instead of connecting to it',
    remedy: 'Turn it on only where the engine connects to this relay',
  },
  engineSockets: {
    flag: '--engine-sockets',
    environment: 'KVRELAY_ENGINE_SOCKETS',
    kind: choice(...ENGINE_SOCKETS),
    fallback: 'per-rank',
    help: 'One engine socket a rank, or one that carries all ranks (the TensorRT-LLM bridge)',
    remedy: 'Give shared only where one socket carries every rank under one numbering',
  },
  engineTopic: {
    flag: '--engine-topic',
    environment: 'KVRELAY_ENGINE_TOPIC',
    kind: text,
    fallback: '',
    help: 'Subscribe to topics with this prefix; empty: to all',
    remedy: 'Give the start of the topic the engine publishes on',
  },
  engineReceiveHwm: {
    flag: '--engine-receive-hwm',
    environment: 'KVRELAY_ENGINE_RECEIVE_HWM',
    kind: integer(1, 10_000_000, 'MESSAGES'),
    fallback: '100000',
    help: 'Unread engine messages kept, 16 MiB at most; beyond them the engine has to keep or lose them',
    remedy: 'Give the number of engine messages that may wait',
  },
  engineMaxMessageBytes: {
    flag: '--engine-max-message-bytes',
    environment: 'KVRELAY_ENGINE_MAX_MESSAGE_BYTES',
    kind: integer(1024, 0x7fff_ffff, 'BYTES'),
    fallback: '268435456',
    help: 'Largest engine message; a larger one makes the socket drop the engine and reconnect',
    remedy: 'Give the size of the largest message the engine may send',
  },
  engineFullReports: {
    flag: '--engine-full-reports',
    environment: 'KVRELAY_ENGINE_FULL_REPORTS',
    kind: toggle,
    fallback: 'off',
    strictLacks: 'counts every store',
    help: 'Take a root store whose 2 or more blocks are all held for a repeat, and do not count it',
    remedy: 'Turn it on only where clients ask the engine for full reports',
  },
  engineMetrics: {
    flag: '--engine-metrics',
    environment: 'KVRELAY_ENGINE_METRICS',
    kind: httpUrl,
    fallback: null,
    strictLacks: 'publishes no worker load',
    help: "Publish the worker's load (used KV blocks) from this Prometheus page of the engine",
    remedy:
      'Give the address of the metrics page of the engine, such as http://127.0.0.1:8000/metrics',
  },
  dpRank: {
    flag: '--dp-rank',
    environment: 'KVRELAY_DP_RANK',
    kind: integer(0, U32_MAX, 'RANK'),
    fallback: '0',
    help: 'First data-parallel rank of the engine endpoint',
    remedy: 'Give the absolute data-parallel rank of this engine',
  },
  dpSize: {
    flag: '--dp-size',
    environment: 'KVRELAY_DP_SIZE',
    kind: integer(1, 1024, 'RANKS'),
    fallback: '1',
    help: 'Number of data-parallel ranks, each with a relay of its own',
    remedy: 'Give the number of ranks that the engine of this worker serves',
  },
  blockSize: {
    flag: '--block-size',
    environment: 'KVRELAY_BLOCK_SIZE',
    kind: integer(1, 65_536, 'TOKENS'),
    fallback: null,
    required: 'with-engine',
    help: 'Tokens a KV block as the router counts them; not needed with --engine none',
    remedy:
      "Give the engine's block size in tokens (vLLM --block-size, SGLang --page-size, " +
      'TensorRT-LLM tokens_per_block)',
  },
  imageTokenId: {
    flag: '--image-token-id',
    environment: 'KVRELAY_IMAGE_TOKEN_ID',
    kind: integer(0, U32_MAX, 'TOKEN'),
    fallback: null,
    help: "Token that stands for an image in the engine's prompts, for multimodal hashes",
    remedy: "Give the token id from the model's configuration, or leave it out",
  },
  videoTokenId: {
    flag: '--video-token-id',
    environment: 'KVRELAY_VIDEO_TOKEN_ID',
    kind: integer(0, U32_MAX, 'TOKEN'),
    fallback: null,
    help: "Token that stands for a video in the engine's prompts, for multimodal hashes",
    remedy: "Give the token id from the model's configuration, or leave it out",
  },
};
