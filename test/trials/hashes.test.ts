/** Trials of hashes and numbers: 64 bits from wire to wire, what is hashed, and block sizes. */
import { unpack } from 'msgpackr';
import { of } from 'rxjs';
import { expect, test } from 'vitest';
import { BatchReader } from '../../src/engines/batch-reader.ts';
import { RelayMetrics } from '../../src/metrics/relay-metrics.ts';
import { pipeline } from '../../src/pipeline.ts';
import { Publisher } from '../../src/protocol/publisher.ts';
import { MemorySink } from '../../src/sinks/memory.ts';
import type { StatusSnapshot } from '../../src/status/status-source.ts';
import { eventsOf, shown } from '../support/published-events.ts';
import { decodeEnvelope } from '../support/scenarios.ts';
import { SocketTrial } from '../support/socket-trial.ts';
import { attemptStart } from '../support/start-attempt.ts';
import { A, B, blocksOf, C, f, Rm, St, Trial, tokensHash, trialConfig } from '../support/trials.ts';
import { readJsonLines } from '../support/vectors.ts';

const LARGEST = 2n ** 64n - 1n;

test('H1: hashes are exact from wire to wire', () => {
  const trial = new Trial();
  const [first, ...others] = [LARGEST, 2n ** 53n + 1n, 2n ** 53n, 1n, 0n];
  const chain = [St(first as bigint)];
  let parent = first as bigint;
  for (const hash of others) {
    chain.push(St(hash, { parent }));
    parent = hash;
  }
  expect(trial.send(f(0, chain))).toEqual([
    'S#1(∅→18446744073709551615,9007199254740993,9007199254740992,1,0)',
  ]);
  expect(trial.send(f(1, [St(105, { parent: 0 })]))).toEqual(['S#2(0→105)']);
  expect(trial.send(f(2, [Rm(2n ** 53n + 1n)]))).toEqual(['R#3(9007199254740993)']);
  // On the device tier a block goes with all that hang on it.
  expect(trial.index).toEqual(['18446744073709551615']);
  // The same 64 bits, signed: SGLang and the TensorRT-LLM bridge write hashes so.
  expect(trial.send(f(3, [Rm(-1n)]))).toEqual(['R#4(18446744073709551615)']);
});

test('H2: a digest of bytes is its last 8, big-endian', () => {
  const trial = new Trial();
  const digest = Buffer.concat([Buffer.alloc(24, 0xd1), Buffer.from('0000000000000065', 'hex')]);
  const child = { ...St(102), parent_block_hash: digest };
  expect(trial.send(f(0, [{ ...St(101), block_hashes: [digest] }]))).toEqual(['S#1(∅→101)']);
  expect(trial.send(f(1, [child]))).toEqual(['S#2(101→102)']);
  expect(trial.send(f(2, [Rm(101)]))).toEqual(['R#3(101)']);
  const short = { ...St(103), block_hashes: [Buffer.alloc(7, 1)] };
  expect(trial.send(f(3, [short, St(104)]))).toEqual(['S#4(∅→104)']);
  expect(trial.metrics.droppedEngineEvents.bad_hash).toBe(1);
});

test('H5: workers that name the same tokens differently publish the same tokens hash', () => {
  const stores = [7n, 8n].map((workerId, index) => {
    const trial = new Trial({ publisher: new Publisher({ workerId }) });
    const [event] = trial.events(f(0, [St(index === 0 ? 101 : 999, { tokens: A })]));
    return event;
  });
  expect(stores.map((store) => store?.workerId)).toEqual([7n, 8n]);
  expect(stores.map((store) => store?.blocks[0]?.hash)).toEqual([101n, 999n]);
  expect(stores[0]?.blocks[0]?.tokensHash).toBe(stores[1]?.blocks[0]?.tokensHash);
  expect(stores[0]?.blocks[0]?.tokensHash).toBe(0xcb38_e4d7_fb2d_ca5cn);
});

test('H6: every integer leaves as an integer, whatever its size', () => {
  const sink = new MemorySink();
  const [, , payload] = f(0, [St([LARGEST, 2n ** 40n]), Rm(LARGEST)]) as [Buffer, Buffer, Buffer];
  const reader = new BatchReader({ compat: 'safe', engine: 'vllm' });
  const batch = reader.read(payload, 0);
  if (typeof batch === 'string') throw new Error(batch);
  const config = {
    ...trialConfig(),
    publisher: new Publisher({
      workerId: 2n ** 40n + 1n,
      publisherId: 2 ** 53 - 1,
      firstEventId: 2 ** 32 + 5,
      firstSequence: 2 ** 33,
    }),
  };
  const metrics = new RelayMetrics();
  const beforeMs = Date.now();
  pipeline(of(batch), { config, indexer: null, sink, metrics }).subscribe();

  const envelope = sink.messages[0]?.envelope ?? Buffer.alloc(0);
  const published = decodeEnvelope(envelope).payload;
  expect([...markersOf(envelope), ...markersOf(published)]).not.toContain(0xcb);
  expect([...markersOf(envelope), ...markersOf(published)]).not.toContain(0xca);
  expect(eventsOf(published).map(shown)).toEqual([
    'S#4294967301(∅→18446744073709551615,1099511627776)',
    'R#4294967302(18446744073709551615)',
  ]);
  expect(eventsOf(published)[0]?.workerId).toBe(2n ** 40n + 1n);
  // An integer above 2^32 decodes to a bigint, a float never does.
  const { published_at } = unpack(envelope) as { published_at: unknown };
  expect(published_at).toBeTypeOf('bigint');
  expect(Number(published_at)).toBeGreaterThanOrEqual(beforeMs);
  expect(Number(published_at)).toBeLessThanOrEqual(Date.now());
});

test.each(['0', '-1', 'sixteen', '16.5', '', '2662439576'])(
  'H7: a block size of %j is refused at the start',
  { retry: 3 }, // the 2 s hold where nothing else takes the processors
  async (size) => {
    const { exitCode, lines } = await attemptStart(['--block-size', size], 2000);
    expect(exitCode).toBe(2);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('--block-size');
  },
);

test('H7: so is a missing block size', { retry: 3 }, async () => {
  const { exitCode, lines } = await attemptStart([], 2000);
  expect(exitCode).toBe(2);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('--block-size is missing');
});

test('H8: status shows a u64 exactly', async () => {
  const trial = await SocketTrial.start({ flags: ['--worker-id', String(LARGEST)] });
  await trial.send(f(0, [St(LARGEST)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→18446744073709551615)']);
  const { status, text } = await trial.get('/api/status');
  expect(status).toBe(200);
  const { settings, ranks } = JSON.parse(text) as StatusSnapshot;
  expect(settings.workerId).toBe('18446744073709551615');
  expect(ranks.map(({ worker_id }) => worker_id)).toEqual(['18446744073709551615']);
});

interface HashVector {
  readonly name: string;
  readonly tokens: readonly number[];
  readonly block_size: number;
  readonly block_mm_infos: readonly ({ mm_objects: { mm_hash: string }[] } | null)[] | null;
  readonly lora_name: string | null;
  readonly is_eagle: boolean | null;
  readonly cache_namespace: string | null;
  readonly hashes: readonly string[];
}

test.each(readJsonLines<HashVector>('dynamo/hash.jsonl'))(
  'H9: $name, from wire to wire, as Dynamo’s own code has it',
  (vector) => {
    const blockHashes = vector.hashes.map((_, index) => 101 + index);
    const pairs = vector.tokens.slice(1).map((token, index) => [vector.tokens[index], token]);
    const store = {
      ...St(blockHashes, { size: vector.block_size }),
      token_ids: vector.is_eagle === true ? pairs : vector.tokens,
      lora_name: vector.lora_name,
      cache_salt: vector.cache_namespace,
      block_mm_infos:
        vector.block_mm_infos?.map(
          (info) =>
            info && {
              mm_objects: info.mm_objects.map(({ mm_hash }) => ({
                mm_hash: BigInt(mm_hash),
                offsets: [],
              })),
            },
        ) ?? null,
    };
    const blocks = blocksOf(store, { blockSize: vector.block_size });
    expect(blocks.map((block) => String(block.tokensHash))).toEqual(vector.hashes);
  },
);

test('H9: the tokens hash of a block is that of its own tokens, wherever it stands', () => {
  const a = 0xcb38_e4d7_fb2d_ca5cn;
  const b = tokensHash(St(101, { tokens: B }));
  const c = tokensHash(St(101, { tokens: C }));
  const hashesOf = (event: unknown): bigint[] => blocksOf(event).map((block) => block.tokensHash);
  expect(hashesOf(St(101, { tokens: A }))).toEqual([a]);
  expect(hashesOf(St([101, 102], { tokens: [...A, ...B] }))).toEqual([a, b]);
  expect(hashesOf(St([101, 102, 103], { tokens: [...A, ...B, ...C] }))).toEqual([a, b, c]);
  expect(new Set([a, b, c]).size).toBe(3);
  // Values that the contract has from Dynamo's own code.
  expect(tokensHash(St(1, { tokens: [4_294_967_295, 2, 3, 4] }))).toBe(0x6d37_147e_bb4c_8f4fn);
  expect(tokensHash(St(1, { tokens: A, lora: 'lora' }))).toBe(0x6dc2_28ef_96ee_6785n);
  expect(tokensHash(St(1, { tokens: A, salt: 's' }))).toBe(0x4f7f_33cb_d752_d815n);
  const image = { mm_objects: [{ mm_hash: 7n, offsets: [] }] };
  const store = { ...St(1, { tokens: A }), block_mm_infos: [image] };
  expect(tokensHash(store)).toBe(0x5160_c66a_a3c6_01dan);
});

test('R5: stores of another block size publish nothing, and the mismatch stays visible', async () => {
  const trial = await SocketTrial.start();
  for (let sequence = 0; sequence < 100; sequence++) {
    const tokens = Array.from({ length: 16 }, (_, index) => index);
    await trial.send(f(sequence, [St(101 + sequence, { tokens, size: 16 })]));
  }
  await trial.until(() => trial.rank().counters.accepted === 100);
  expect(await trial.output(0)).toEqual([]);
  expect(trial.warnings.length).toBeGreaterThan(0);
  expect(trial.warnings.length).toBeLessThanOrEqual(3);
  expect(trial.rank().block_size).toEqual({ configured: 4, seen: [16] });
  expect(trial.rank().degraded.map(({ code }) => code)).toContain('block_size_mismatch');
  const suspicious = 'dynamo_component_kv_publisher_zmq_suspicious_events_total';
  expect(await trial.metric(suspicious, { reason: 'empty_store_blocks' })).toEqual([100]);
  const mismatch = { reason: 'block_size_mismatch' };
  expect(await trial.metric('kvrelay_degraded', mismatch)).toEqual([1]);

  await trial.send(f(100, [St(901)]));
  expect(await trial.output(1)).toEqual(['S#1(∅→901)']);
  expect(trial.rank().block_size.seen).toEqual([16, 4]);
});

/** The markers of all values in a MessagePack text, containers and their elements alike. */
function markersOf(bytes: Uint8Array): Set<number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const markers = new Set<number>();
  let at = 0;
  const skip = (byteCount: number): void => {
    at += byteCount;
  };
  const uint = (byteCount: number): number => {
    skip(byteCount);
    if (byteCount === 1) return view.getUint8(at - 1);
    return byteCount === 2 ? view.getUint16(at - 2) : view.getUint32(at - 4);
  };
  const walkAll = (count: number): void => {
    for (let index = 0; index < count; index++) walk();
  };
  const walk = (): void => {
    const marker = uint(1);
    markers.add(marker);
    if (marker >= 0x80 && marker <= 0x8f) walkAll((marker & 15) * 2);
    else if (marker >= 0x90 && marker <= 0x9f) walkAll(marker & 15);
    else if (marker >= 0xa0 && marker <= 0xbf) skip(marker & 31);
    else if (marker >= 0xc4 && marker <= 0xc6) skip(uint(1 << (marker - 0xc4)));
    else if (marker === 0xca || marker === 0xcb) skip(marker === 0xca ? 4 : 8);
    else if (marker >= 0xcc && marker <= 0xd3) skip(1 << (marker & 3));
    else if (marker >= 0xd9 && marker <= 0xdb) skip(uint(1 << (marker - 0xd9)));
    else if (marker === 0xdc || marker === 0xdd) walkAll(uint(marker === 0xdc ? 2 : 4));
    else if (marker === 0xde || marker === 0xdf) walkAll(uint(marker === 0xde ? 2 : 4) * 2);
    else if (marker >= 0x80 && marker < 0xe0 && (marker < 0xc0 || marker > 0xc3))
      throw new Error(`unknown marker ${marker}`);
  };
  walk();
  if (at !== bytes.length) throw new Error(`${bytes.length - at} bytes behind the value`);
  return markers;
}

test('R5: a chunk that is cut into blocks is no mismatch', async () => {
  const trial = await SocketTrial.start();
  const chunk = { size: 8, tokens: [...A, ...B], medium: 'CPU' };
  await trial.send(f(0, [St(101, chunk)]));
  expect(await trial.output(1)).toHaveLength(1);
  expect(trial.rank().degraded).toEqual([]);
});
