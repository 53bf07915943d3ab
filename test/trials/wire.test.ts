/** Trials of the wire: the shapes in which engines send events, and input that is none. */
import { expect, test } from 'vitest';
import { SocketTrial } from '../support/socket-trial.ts';
import { A, f, message, packed, positional, Rm, St, Trial, tokensHash } from '../support/trials.ts';

test('W1: a store is the same as an array and as a map, a batch may mix both, and a map is no batch', () => {
  const parent = St(101, { tokens: A });
  const child = St(102, { parent: 101 });
  const forms = [
    [parent, child],
    [positional(parent, 12), positional(child, 12)],
    [positional(parent, 7), child],
    [parent, positional(child, 5)],
  ];
  const trials = forms.map((events) => {
    const trial = new Trial();
    expect(trial.send(f(0, events))).toEqual(['S#1(∅→101,102)']);
    return trial;
  });
  const payloads = trials.map((trial) => trial.payloads.map((payload) => payload.toString('hex')));
  for (const payload of payloads) expect(payload).toEqual(payloads[0]);

  const trial = new Trial();
  const mapBatch = packed({ ts: 1.5, events: [parent], data_parallel_rank: 0 });
  expect(trial.send(message(0, mapBatch))).toEqual([]);
  expect(trial.metrics.malformed.batch_shape).toBe(1);
});

test('W2: an undecodable payload costs itself; the connection stays and nothing counts as lost', async () => {
  const trial = await SocketTrial.start();
  await trial.send(f(0, [St(101)]));
  await trial.send(message(1, Buffer.of(0xc1, 0xff)));
  await trial.send(f(2, [St(102)]));
  expect(await trial.output(2)).toEqual(['S#1(∅→101)', 'S#2(∅→102)']);
  expect(trial.rank().counters).toMatchObject({ malformed: 1, lost_batches: 0 });

  for (let sequence = 3; sequence < 20; sequence++) {
    await trial.send(message(sequence, Buffer.of(0xc1, 0xff)));
  }
  await trial.send(f(20, [St(103)]));
  expect(await trial.output(3)).toContain('S#3(∅→103)');
  expect(trial.rank().counters).toMatchObject({ malformed: 18, lost_batches: 0 });
  const messages = trial.logs.map(({ msg }) => msg);
  expect(messages.filter((text) => text === 'engine connected')).toHaveLength(1);
  expect(messages.filter((text) => text === 'engine disconnected')).toEqual([]);
  expect(trial.warnings).toHaveLength(3);
});

test('W4: a map with the cache salt in the place of the adapter name is the salt', () => {
  const salted = St(101, { tokens: A, salt: 't1' });
  const { cache_salt, ...rest } = salted;
  const array = positional({ ...rest, lora_name: { cache_salt } }, 8);
  expect(tokensHash(array)).toBe(tokensHash(salted));
  expect(tokensHash(salted)).not.toBe(tokensHash(St(101, { tokens: A })));
});

test('W5: token pairs are windows that overlap by one token', () => {
  const pairs = [
    [1, 2],
    [2, 3],
    [3, 4],
    [4, 5],
  ];
  const overlapping = St(101, { tokens: pairs });
  expect(tokensHash(overlapping)).toBe(0x1a92_ffa9_004c_0851n);
  expect(tokensHash(positional(overlapping, 6))).toBe(0x1a92_ffa9_004c_0851n);
  expect(tokensHash(St(101, { tokens: A }))).toBe(0xcb38_e4d7_fb2d_ca5cn);
});

test('W8: a nil and an absent field are the same', () => {
  const store = St(101, { tokens: A, medium: null });
  const { parent_block_hash: _parent, medium: _medium, ...required } = store;
  const nils = {
    ...store,
    lora_id: null,
    lora_name: null,
    cache_salt: null,
    extra_keys: null,
    block_mm_infos: null,
    group_idx: null,
    kv_cache_spec_kind: null,
    kv_cache_spec_sliding_window: null,
    locality: null,
    ownership: null,
    session_id: null,
  };
  const forms: unknown[] = [nils, required, positional(store, 5), positional(nils, 14)];
  const payloads = forms.map((event) => {
    const trial = new Trial();
    expect(trial.send(f(0, [event]))).toEqual(['S#1(∅→101)']);
    return trial.payloads.map((payload) => payload.toString('hex'));
  });
  for (const payload of payloads) expect(payload).toEqual(payloads[0]);
});

test('W9: the topic is a prefix; status shows it and how much passed', async () => {
  const trial = await SocketTrial.start({ flags: ['--engine-topic', 'kv'] });
  await trial.send(f(0, [St(101)], { topic: 'kv-events' }));
  await trial.send(f(1, [St(102)], { topic: 'kv' }));
  await trial.send(f(2, [St(103)], { topic: 'other' }));
  await trial.send(f(2, [St(104)], { topic: 'kvx@pod' }));
  expect(await trial.output(3)).toEqual(['S#1(∅→101)', 'S#2(∅→102)', 'S#3(∅→104)']);
  expect(trial.worker.status().settings.engineTopic).toBe('kv');
  expect(trial.rank().counters).toMatchObject({ received: 3, lost_batches: 0 });
  expect(await trial.metric('kvrelay_engine_batches_total')).toEqual([3]);
});

test('W9: without a topic every message passes', async () => {
  const trial = await SocketTrial.start();
  await trial.send(f(0, [St(101)], { topic: 'kv-events' }));
  await trial.send(f(1, [St(102)], { topic: 'other' }));
  expect(await trial.output(2)).toEqual(['S#1(∅→101)', 'S#2(∅→102)']);
  expect(trial.worker.status().settings.engineTopic).toBe('');
});

test('W11: the tag may stand anywhere, and texts may come as bytes', () => {
  const store = St(101, { tokens: A });
  const { type, ...fields } = store;
  const remove = Rm(101);
  const asBytes = (event: object): unknown =>
    new Map(
      Object.entries(event).map(([key, value]) => [
        Buffer.from(key),
        typeof value === 'string' ? Buffer.from(value) : value,
      ]),
    );
  const forms: [unknown, unknown][] = [
    [store, remove],
    [
      { ...fields, type },
      { block_hashes: [101n], type: 'BlockRemoved' },
    ],
    [
      { ...store, medium: Buffer.from('GPU') },
      { ...remove, medium: Buffer.from('GPU') },
    ],
    [{ ...store, type: Buffer.from('BlockStored') }, [Buffer.from('BlockRemoved'), [101n]]],
    [asBytes(store), asBytes(remove)],
  ];
  const payloads = forms.map(([first, second]) => {
    const trial = new Trial();
    expect(trial.send(f(0, [first]), f(1, [second]))).toEqual(['S#1(∅→101)', 'R#2(101)']);
    return trial.payloads.map((payload) => payload.toString('hex'));
  });
  for (const payload of payloads) expect(payload).toEqual(payloads[0]);
});

test.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString'])(
  'W12: an unknown key %s has no effect on this event or the next',
  (key) => {
    const { medium: _medium, ...withoutMedium } = St(101, { tokens: A });
    const odd = new Map<string, unknown>([
      ...Object.entries(withoutMedium),
      [key, { medium: 'CPU', kv_cache_spec_kind: 'mamba' }],
    ]);
    const trial = new Trial();
    expect(packed(odd).includes(key)).toBe(true);
    expect(trial.send(f(0, [odd]))).toEqual(['S#1(∅→101)']);
    expect(trial.send(f(1, [{ ...withoutMedium, block_hashes: [102n] }]))).toEqual(['S#2(∅→102)']);
    expect('medium' in {}).toBe(false);
  },
);
