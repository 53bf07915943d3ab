/** The captured long streams and what the real publisher made of them. */
import type { DynamoMetrics, ScenarioSettings } from './scenarios.ts';
import { readVectorFile } from './vectors.ts';

export interface Trace {
  /** gzip over records: u32 BE frame count, then a u32 BE length and the bytes for each frame. */
  readonly bytes: Buffer;
  readonly settings: ScenarioSettings;
  readonly sha256: string;
  readonly metrics: DynamoMetrics;
  readonly expected: {
    readonly messages: number;
    readonly last_event_id: string;
    readonly payloads_sha256: string;
    readonly live: readonly {
      readonly dp_rank: number;
      readonly storage_tier: string;
      readonly count: number;
      readonly sha256: string;
    }[];
  };
}

export function readTrace(name: string): Trace {
  const description = JSON.parse(readVectorFile(`dynamo/${name}.json`).toString()) as Trace;
  return { ...description, bytes: readVectorFile(`dynamo/${name}.bin.gz`) };
}

/** The frames of each native batch. */
export function* traceRecords(bytes: Buffer): Generator<Buffer[]> {
  for (let at = 0; at < bytes.length; ) {
    const frames: Buffer[] = [];
    const count = bytes.readUInt32BE(at);
    at += 4;
    for (let frame = 0; frame < count; frame++) {
      const length = bytes.readUInt32BE(at);
      frames.push(bytes.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    yield frames;
  }
}
