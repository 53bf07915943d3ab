#!/usr/bin/env python
"""A stock Dynamo 1.6.1 worker: it serves an endpoint and registers a model card, and leaves KV events to
others unless --publish asks for its own publisher. Ends with standard input, taking its records along."""
import asyncio
import os

from dynamo_common import export, input_ended, parser, runtime, say


def options():
    known = parser(__doc__)
    known.add_argument("--dp-start", type=int, default=0)
    known.add_argument("--dp-size", type=int, default=1)
    known.add_argument("--publish", help="engine's event socket for a stock publisher of rank --dp-start")
    return known.parse_args()


async def main(given):
    import dynamo._core as core
    from dynamo.llm import KvEventPublisher

    async def generate(_request):
        yield {"token_ids": []}

    started, endpoint = runtime(given)
    publisher = None
    if given.publish:
        publisher = KvEventPublisher(
            endpoint,
            kv_block_size=given.block_size,
            dp_rank=given.dp_start,
            enable_local_indexer=True,
            zmq_endpoint=given.publish,
            zmq_topic="",
            batching_timeout_ms=0,
        )
    serving = asyncio.ensure_future(endpoint.serve_endpoint(generate))
    await asyncio.sleep(0.5)
    config = core.ModelRuntimeConfig()
    config.total_kv_blocks = 1000
    config.data_parallel_start_rank = given.dp_start
    config.data_parallel_size = given.dp_size
    await core.register_model(
        core.ModelInput.Tokens,
        core.ModelType.Chat,
        endpoint,
        "/nonexistent",
        "m",
        worker_type=core.WorkerType.Aggregated,
        kv_cache_block_size=given.block_size,
        runtime_config=config,
        skip_model_assets=True,
    )
    say("ready")
    await input_ended()
    if publisher is not None:
        publisher.shutdown()
    started.shutdown()
    serving.cancel()
    await asyncio.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    given = options()
    export(given)
    asyncio.run(main(given))
