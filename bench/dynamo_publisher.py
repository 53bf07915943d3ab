"""The publisher that kvrelay is measured against: Dynamo's own KvEventPublisher, with its local indexer,
on the NATS plane, discovery in files.

    python dynamo_publisher.py ENGINE_ENDPOINT BLOCK_SIZE

NATS_SERVER and DYN_FILE_KV come from the environment. Says a line of JSON when it has been started, and
ends with standard input.
"""
import asyncio
import json
import os
import sys

# Read by the native module when it is loaded.
os.environ.update(DYN_DISCOVERY_BACKEND="file", DYN_EVENT_PLANE="nats", DYN_TCP_RPC_HOST="127.0.0.1")
os.environ.setdefault("DYN_LOG", "error")


async def main(engine_endpoint: str, block_size: int) -> None:
    from dynamo.llm import KvEventPublisher
    from dynamo.runtime import DistributedRuntime

    loop = asyncio.get_running_loop()
    runtime = DistributedRuntime(loop, "file", "tcp", event_plane="nats")
    publisher = KvEventPublisher(
        runtime.endpoint("bench.dynamo.generate"),
        worker_id=42,
        kv_block_size=block_size,
        dp_rank=0,
        enable_local_indexer=True,
        zmq_endpoint=engine_endpoint,
        zmq_topic="",
        batching_timeout_ms=0,
    )
    print(json.dumps({"ready": True}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    publisher.shutdown()
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
