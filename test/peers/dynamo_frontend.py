#!/usr/bin/env python
"""A stock Dynamo 1.6.1 frontend over HTTP that turns requests away while its workers' KV caches are fuller than
--threshold, by the load events that it hears. Ends with standard input."""
import asyncio
import os

from dynamo_common import export, input_ended, parser, runtime, say


async def main(given):
    import dynamo._core as core

    started, _ = runtime(given)
    routing = core.RouterConfig(
        core.RouterMode.RoundRobin, None, active_decode_blocks_threshold=given.threshold
    )
    entry = core.EntrypointArgs(
        core.EngineType.Dynamic,
        http_host="127.0.0.1",
        http_port=given.http_port,
        router_config=routing,
    )
    engine = await core.make_engine(started, entry)
    serving = asyncio.ensure_future(core.run_input(started, "http", engine))
    say("ready")
    await input_ended()
    serving.cancel()
    started.shutdown()
    os._exit(0)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--http-port", type=int, required=True)
    options.add_argument("--threshold", type=float, default=0.5, help="share of the blocks in use")
    given = options.parse_args()
    export(given)
    asyncio.run(main(given))
