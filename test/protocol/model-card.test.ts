import { expect, test } from 'vitest';
import { readModelCard } from '../../src/protocol/model-card.ts';
import { cardProblems } from '../../src/router/card-check.ts';

/** Written by a stock 1.6.1 worker of two ranks, from the fourth. */
const STOCK =
  '{"type":"Model","namespace":"kvrelay","component":"backend","endpoint":"generate","instance_id":15854210537969452168,"card_json":{"display_name":"m","slug":"m","source_path":"/nonexistent","model_info":null,"tokenizer":null,"context_length":0,"kv_cache_block_size":0,"migration_limit":0,"model_type":"Chat","model_input":"Tokens","worker_type":"aggregated","needs":[],"runtime_config":{"total_kv_blocks":1000,"max_num_seqs":null,"max_num_batched_tokens":null,"tool_call_parser":null,"reasoning_parser":null,"tool_call_arguments_format":"json_string","structural_tag_mode":"off","structural_tag_scope":"auto","structural_tag_schema":"auto","exclude_tools_when_tool_choice_none":true,"data_parallel_start_rank":4,"data_parallel_size":2,"enable_local_indexer":true,"enable_eagle":false},"media_decoder":null,"media_fetcher":null}}';

const endpoint = { namespace: 'kvrelay', component: 'backend', endpoint: 'generate' };

test('a stock card tells ranks and block size, 0 being none', () => {
  expect(readModelCard(STOCK)).toEqual({
    blockSize: null,
    dpRank: 4,
    dpSize: 2,
    kvStateEndpoint: null,
  });
  const sized = STOCK.replace('"kv_cache_block_size":0', '"kv_cache_block_size":64');
  expect(readModelCard(sized)?.blockSize).toBe(64);
  for (const text of ['', '{}', STOCK.replace('"Model"', '"Endpoint"'), STOCK.slice(0, 300)]) {
    expect(readModelCard(text)).toBeNull();
  }
});

test('what makes routers ignore a source is a problem, with what to check', () => {
  const card = { blockSize: 64, dpRank: 4, dpSize: 2, kvStateEndpoint: endpoint };
  const expected = { endpoint, dpRanks: [4, 5], blockSize: 64 };
  expect(cardProblems(card, expected)).toEqual([]);
  expect(cardProblems({ ...card, blockSize: null, kvStateEndpoint: null }, expected)).toEqual([]);
  const causes = (changed: object, wanted: object = {}): string[] =>
    cardProblems({ ...card, ...changed }, { ...expected, ...wanted }).map(({ cause }) => cause);
  expect(causes({ dpSize: 1 })).toEqual(['card_ranks']);
  expect(causes({}, { dpRanks: [3, 4] })).toEqual(['card_ranks']);
  expect(causes({ blockSize: 16 })).toEqual(['card_block_size']);
  expect(causes({ kvStateEndpoint: { ...endpoint, component: 'other' } })).toEqual([
    'card_endpoint',
  ]);
});
