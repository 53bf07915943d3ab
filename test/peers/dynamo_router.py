#!/usr/bin/env python
"""A stock Dynamo 1.6.1 KvRouter: says what its index holds whenever that changes, as rows
[worker, dp rank, tier, parent, block hash, tokens hash], sorted. Ends with standard input."""
import asyncio
import json
import os

from dynamo_common import export, input_ended, parser, runtime, say

POLL_SECONDS = 0.05


def rows(dump):
    """Chains are dumped as one event or as several: one row a block is the same for both."""
    result = []
    for event in dump:
        data = event["event"]["data"]
        stored = data.get("stored") if isinstance(data, dict) else None
        if not stored:
            continue
        parent = stored["parent_hash"]
        for block in stored["blocks"]:
            result.append([
                event["worker_id"],
                event["event"]["dp_rank"],
                event.get("storage_tier", "device"),
                parent,
                block["block_hash"],
                block["tokens_hash"],
            ])
            parent = block["block_hash"]
    return sorted(result, key=lambda row: [-1 if part is None else part for part in row[:2] + row[3:]])


async def main(given):
    import dynamo._core as core

    started, endpoint = runtime(given)
    router = core.KvRouter(endpoint, given.block_size, core.KvRouterConfig(router_event_threads=2))
    say("ready")

    async def poll():
        last = None
        while True:
            raw = await router.dump_events()
            blocks = rows(json.loads(raw) if isinstance(raw, str) else raw)
            if blocks != last:
                say("index", blocks=blocks)
            last = blocks
            await asyncio.sleep(POLL_SECONDS)

    polling = asyncio.ensure_future(poll())
    await input_ended()
    polling.cancel()
    started.shutdown()
    os._exit(0)


if __name__ == "__main__":
    given = parser(__doc__).parse_args()
    export(given)
    asyncio.run(main(given))
