"""What a stock Dynamo router holds after given streams of router events.

    python dynamo_router_oracle.py --nats-url URL [--settle SECONDS] < scenarios.jsonl > held.jsonl

In   one stream a line: {"name", "events": [event, ...]}; an event is
     {"type": "stored", "tier", "parent": u64|null, "blocks": [[block hash, tokens hash], ...]},
     {"type": "removed", "tier", "hashes": [...]} or {"type": "cleared"}; "wait_s" on an event lets the router
     rest before it. Every u64 is a decimal string.
Out  {"name", "blocks": [[tier, parent|null, block hash, tokens hash], ...]} in the order of the router's dump.

Each stream is a rank of its own and has tokens of its own, so that streams do not meet in the router's tree. The
sources are live-only: what the router holds comes from these events alone.
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
import tempfile
import time

BUCKETS = ("event_channels", "event_sources")
PREFIX = "namespace.{0}.component.{1}.endpoint.{2}"
# One more block at the end of a stream tells that the events before it were applied.
SENTINEL = 2**63 + 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nats-url", required=True)
    parser.add_argument("--settle", type=float, default=30.0, help="seconds to wait for the last event")
    return parser.parse_args()


def file_key(key):
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else "%%%02X" % b for b in key.encode())


def put(folder, bucket, key, record):
    path = os.path.join(folder, "v1", bucket, file_key(key))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    draft = os.path.join(os.path.dirname(path), ".tmp_%016x" % secrets.randbits(64))
    with open(draft, "w", encoding="utf8") as file:
        json.dump(record, file, separators=(",", ":"))
    os.rename(draft, path)
    return path


def own(tokens_hash, rank):
    """Tokens hashes of different ranks must differ."""
    return (int(tokens_hash) + (rank + 1) * 0x9E3779B97F4A7C15) % 2**64


def wire_data(event, rank):
    if event["type"] == "cleared":
        return "cleared"
    if event["type"] == "removed":
        return {"removed": {"block_hashes": [int(one) for one in event["hashes"]]}}
    blocks = [
        {"block_hash": int(block), "tokens_hash": own(tokens, rank), "mm_extra_info": None}
        for block, tokens in event["blocks"]
    ]
    parent = None if event["parent"] is None else int(event["parent"])
    return {"stored": {"parent_hash": parent, "start_position": None, "blocks": blocks}}


class Source:
    """One rank with its live-only source."""

    def __init__(self, rank, stream, worker_id, names):
        self.rank, self.stream, self.worker_id = rank, stream, worker_id
        self.namespace, self.component, self.endpoint = names
        self.publisher_id = secrets.randbits(52) + 1
        self.sequence, self.next_id = 0, 1

    def register(self, folder):
        endpoint = {"namespace": self.namespace, "component": self.component, "name": self.endpoint}
        scope = {"kind": "endpoint", "endpoint": endpoint}
        key = "namespace/%s/component/%s/endpoint/%s/topic/kv-events/%x" % (
            self.namespace, self.component, self.endpoint, self.publisher_id)
        subject = PREFIX.format(self.namespace, self.component, self.endpoint)
        channel = {"type": "EventChannel", "scope": scope, "topic": "kv-events",
                   "instance_id": self.publisher_id,
                   "transport": {"kind": "Nats", "config": {"subject_prefix": subject}}}
        source = {"type": "EventSource", "scope": scope, "topic": "kv-events",
                  "publisher_id": self.publisher_id,
                  "metadata": {"kv_state_endpoint": endpoint,
                               "worker": {"worker_id": self.worker_id, "dp_rank": self.rank},
                               "publisher_id": self.publisher_id}}
        return [put(folder, "event_channels", key, channel), put(folder, "event_sources", key, source)]

    async def publish(self, connection, msgpack, subject, events):
        for start in range(0, len(events), 64):
            payload = msgpack.packb([self.router_event(one) for one in events[start:start + 64]])
            envelope = {"publisher_id": self.publisher_id, "sequence": self.sequence,
                        "published_at": int(time.time() * 1000), "topic": "kv-events",
                        "payload": payload}
            self.sequence += 1
            await connection.publish(subject, msgpack.packb(envelope))

    def router_event(self, event):
        numbered = {"event_id": self.next_id, "data": wire_data(event, self.rank), "dp_rank": self.rank}
        self.next_id += 1
        return {"worker_id": self.worker_id, "storage_tier": event.get("tier", "device"),
                "residency_domain": "worker", "event": numbered}


def held_by_rank(dump):
    """Rows a rank, in the dump's order; chains are unfolded."""
    held = {}
    for entry in dump:
        event = entry["event"]
        stored = event["data"]["stored"]
        rank = event["dp_rank"]
        parent = stored["parent_hash"]
        for block in stored["blocks"]:
            held.setdefault(rank, []).append(
                [entry.get("storage_tier", "device"), parent, block["block_hash"], block["tokens_hash"]])
            parent = block["block_hash"]
    return held


def text(row, rank):
    tier, parent, block_hash, tokens_hash = row
    tokens = (tokens_hash - (rank + 1) * 0x9E3779B97F4A7C15) % 2**64
    return [tier, None if parent is None else str(parent), str(block_hash), str(tokens)]


async def keep_alive(paths):
    while True:
        await asyncio.sleep(3)
        for path in paths:
            os.utime(path)


async def worker_card(core, runtime, endpoint, ranks):
    async def generate(_request):
        yield {"token_ids": []}

    serving = asyncio.ensure_future(endpoint.serve_endpoint(generate))
    await asyncio.sleep(0.5)
    card = core.ModelRuntimeConfig()
    card.enable_local_indexer = False
    card.total_kv_blocks = 1000
    card.data_parallel_start_rank = 0
    card.data_parallel_size = ranks
    await core.register_model(core.ModelInput.Tokens, core.ModelType.Chat, endpoint, "/nonexistent", "m",
                              worker_type=core.WorkerType.Aggregated, kv_cache_block_size=4,
                              runtime_config=card, skip_model_assets=True)
    return serving


def instance_id(folder):
    bucket = os.path.join(folder, "v1", "instances")
    for name in os.listdir(bucket):
        if not name.startswith(".tmp_"):
            return int(name.rsplit("%2F", 1)[1], 16)
    raise SystemExit("no instance record")


async def run(options, streams, folder):
    import msgpack
    import nats
    import dynamo._core as core
    from dynamo.runtime import DistributedRuntime

    names = ("oracle%x" % secrets.randbits(32), "backend", "generate")
    runtime = DistributedRuntime(asyncio.get_running_loop(), "file", "tcp", event_plane="nats")
    endpoint = runtime.endpoint(".".join(names))
    serving = await worker_card(core, runtime, endpoint, len(streams))
    worker_id = instance_id(folder)
    sources = [Source(rank, one, worker_id, names) for rank, one in enumerate(streams)]
    paths = [path for source in sources for path in source.register(folder)]
    alive = asyncio.ensure_future(keep_alive(paths))
    router = core.KvRouter(endpoint, 4, core.KvRouterConfig(router_event_threads=4))
    connection = await nats.connect(options.nats_url)
    subject = PREFIX.format(*names) + ".kv-events"

    async def dump():
        raw = await router.dump_events()
        return held_by_rank(json.loads(raw) if isinstance(raw, str) else raw)

    async def until(sentinel, ranks):
        deadline = time.time() + options.settle
        while True:
            held = await dump()
            seen = {rank for rank, rows in held.items() if any(row[2] == sentinel for row in rows)}
            if seen >= ranks:
                return held
            if time.time() > deadline:
                raise SystemExit("the router did not apply the events of %s" % sorted(ranks - seen)[:5])
            await asyncio.sleep(0.05)

    # An event before its source is known would be dropped: a first block is sent until it is seen.
    everyone = {source.rank for source in sources}
    probe = {"type": "stored", "parent": None, "blocks": [[str(SENTINEL), str(SENTINEL)]]}
    deadline = time.time() + options.settle
    while True:
        held = await dump()
        missing = everyone - set(held)
        if not missing:
            break
        if time.time() > deadline:
            raise SystemExit("the router does not follow %s" % sorted(missing)[:5])
        for source in sources:
            if source.rank in missing:
                await source.publish(connection, msgpack, subject, [probe])
        await connection.flush()
        await asyncio.sleep(0.2)
    last = {"type": "stored", "parent": None, "blocks": [[str(SENTINEL + 1), str(SENTINEL + 1)]]}
    for source in sources:
        rest = [{"type": "removed", "hashes": [str(SENTINEL)]}]
        for event in source.stream["events"]:
            if event.get("wait_s"):
                await source.publish(connection, msgpack, subject, rest)
                await connection.flush()
                await asyncio.sleep(event["wait_s"])
                rest = []
            rest.append(event)
        await source.publish(connection, msgpack, subject, rest + [last])
    await connection.flush()
    held = await until(SENTINEL + 1, everyone)
    # Lower tiers have queues of their own.
    await asyncio.sleep(0.5)
    held = await dump()
    for source in sources:
        rows = [row for row in held.get(source.rank, []) if row[2] not in (SENTINEL, SENTINEL + 1)]
        line = {"name": source.stream["name"], "blocks": [text(row, source.rank) for row in rows]}
        sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    alive.cancel()
    serving.cancel()
    await connection.close()
    runtime.shutdown()


def main():
    options = arguments()
    streams = [json.loads(line) for line in sys.stdin if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        # The native module reads its environment once, when it is loaded.
        os.environ["DYN_FILE_KV"] = folder
        os.environ["NATS_SERVER"] = options.nats_url
        for bucket in BUCKETS:
            os.makedirs(os.path.join(folder, "v1", bucket), exist_ok=True)
        asyncio.run(run(options, streams, folder))


if __name__ == "__main__":
    main()
