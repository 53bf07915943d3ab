/** An engine's metrics page: its text as the engines write it, and a server that answers with it. */
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { onTestFinished } from 'vitest';

/** Engine index → usage, as vLLM's front end shows them with the blocks of all engines together. */
export function vllmPage(
  usages: Readonly<Record<string, number | string>>,
  blocks: string,
): string {
  const rows = Object.entries(usages);
  const model = 'model_name="meta-llama/Llama-3.1-8B"';
  return [
    '# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.',
    '# TYPE vllm:kv_cache_usage_perc gauge',
    ...rows.map(
      ([engine, usage]) => `vllm:kv_cache_usage_perc{engine="${engine}",${model}} ${usage}`,
    ),
    '# TYPE vllm:cache_config_info gauge',
    ...rows.map(
      ([engine]) =>
        `vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="${engine}",` +
        `num_cpu_blocks="None",num_gpu_blocks="${blocks}",sliding_window="None"} 1.0`,
    ),
    '',
  ].join('\n');
}

/** Samples of each rank; `rank` is null where the page names none. */
export function sglangPage(
  rows: readonly {
    rank: number | null;
    usage: number | string;
    tokens: number | string;
    tp?: number;
  }[],
): string {
  return rows
    .flatMap(({ rank, usage, tokens, tp = 0 }) => {
      const dp = rank === null ? '' : `,dp_rank="${rank}"`;
      const labels = `engine_type="unified",model_name="m",pp_rank="0",tp_rank="${tp}"${dp}`;
      return [
        `sglang:token_usage{${labels}} ${usage}`,
        `sglang:max_total_num_tokens{${labels}} ${tokens}`,
      ];
    })
    .join('\n');
}

/** The address of a page that ends with the test. */
export async function servePage(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}/metrics`;
}
