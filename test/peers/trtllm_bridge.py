#!/usr/bin/env python3
"""TensorRT-LLM events through Dynamo's own polling bridge, run from the ai-dynamo wheel.

TensorRT-LLM's wheel is not on PyPI (only a stub that fetches it elsewhere), so the
engine events here are made by hand, in the shape that the bridge reads; the code that
filters, converts and sends them is Dynamo's.

    trtllm_bridge.py --port 17081 --batches 100
    trtllm_bridge.py --cases --truth -

Fetches the engine's files where they are missing; needs pyzmq, msgspec, msgpack, prometheus-client.
"""
from __future__ import annotations

import json
import logging
import sys
import time

import engine_common as common
import engine_stubs
from fetch_engines import fetch
from workload import Workload

DEFAULT = "1.6.1"


def load(version: str):
    root = fetch("ai-dynamo", version)
    engine_stubs.activate(root, ["dynamo"], ["dynamo.trtllm.publisher", "dynamo.trtllm.utils.request_utils"],
                          ["tensorrt_llm", "torch", "transformers"])
    import dynamo.trtllm.publisher as p
    return p


class Bridge:
    """Dynamo's Publisher without an engine: raw events in, ZMQ messages out."""

    def __init__(self, p, args):
        self.pub = pub = p.Publisher.__new__(p.Publisher)
        pub.additional_metrics = None
        pub._last_engine_event_id_by_rank = {}
        pub.processing_initial_created_events = True
        pub.partial_block_hashes = set()
        pub.kv_block_size = args.block_size
        pub.max_window_size = None
        pub.zmq_kv_event_publisher = p.ZmqKvEventPublisher(f"tcp://*:{args.port}", args.block_size, args.topic)
        pub.kv_event_publishers = None

    @property
    def sequence(self) -> int:
        return self.pub.zmq_kv_event_publisher.sequence

    def feed(self, events) -> None:
        self.pub._handle_kv_event_drain(events)

    def cleared(self, rank=0) -> None:
        self.pub.zmq_kv_event_publisher.publish_all_cleared(rank)

    def close(self) -> None:
        self.pub.zmq_kv_event_publisher.shutdown()


class Events:
    """TensorRT-LLM event dictionaries, ids running per attention-DP rank."""

    def __init__(self, window=None):
        self.next_id: dict[int, int] = {}
        self.window = window

    def make(self, data: dict, rank: int = 0, window=...) -> dict:
        n = self.next_id.get(rank, 0)
        self.next_id[rank] = n + 1
        e = {"event_id": n, "data": data}
        w = self.window if window is ... else window
        if w is not None:
            e["window_size"] = w
        if rank:
            e["attention_dp_rank"] = rank
        return e

    def created(self, levels=(1000, 200), **k):
        return self.make({"type": "created", "num_blocks_per_cache_level": list(levels)}, **k)

    def stored(self, blocks, parent=None, **k):
        """blocks: (hash, tokens[, extra block fields])"""
        out = []
        for b in blocks:
            h, tokens, more = (*b, {})[:3]
            out.append({"type": "stored_block", "block_hash": h, "tokens": [{"type": "unique_token", "token_id": t, "token_extra_id": 0} for t in tokens],
                        "cache_level": 0, "priority": 35, **more})
        extra = k.pop("extra", {})
        return self.make({"type": "stored", "parent_hash": parent, "blocks": out, **extra}, **k)

    def removed(self, hashes, **k):
        return self.make({"type": "removed", "block_hashes": list(hashes)}, **k)

    def updated(self, h, **k):
        return self.make({"type": "updated", "block_hash": h,
                          "cache_level": {"type": "event_diff", "old_value": 0, "new_value": 1},
                          "priority": {"type": "event_diff", "old_value": 35, "new_value": 35}}, **k)


def cases(block: int):
    """(case, events or None for the bridge's own clear, rank of the clear)"""
    T = list(range(100, 100 + 3 * block))
    first, second = T[:block], T[block:2 * block]
    ev = Events(window=4096)
    big = 0xF00DFACE12345678
    yield "created/window-small", [ev.created(window=512)]
    yield "created/window-large", [ev.created(window=4096)]
    yield "stored/first", [ev.stored([(11, first)])]
    yield "stored/with-parent-two-blocks", [ev.stored([(12, first), (13, second)], parent=11)]
    yield "stored/hash-above-int63", [ev.stored([(big, first)], parent=2**64 - 1)]
    yield "stored/partial-last-block", [ev.stored([(14, first), (15, second[:-1])])]
    yield "stored/only-a-partial-block", [ev.stored([(16, first[:1])])]
    yield "stored/other-window-dropped", [ev.stored([(17, first)], window=512)]
    yield "stored/lora-and-salt", [ev.stored([(18, first, {"cache_salt": "tenant-a"})], extra={"lora_name": "ad-7"})]
    yield "stored/conflicting-salts-dropped", [ev.stored([(19, first, {"cache_salt": "a"}), (20, second, {"cache_salt": "b"})])]
    yield "stored/multimodal", [ev.stored([(21, first, {"mm_keys": [{"type": "mm_key", "hash": "0123456789abcdef" * 4, "start_offset": 2}]}), (22, second)])]
    yield "stored/rank-1", [ev.stored([(23, first)], rank=1)]
    yield "updated/ignored", [ev.updated(11)]
    yield "removed/one", [ev.removed([11])]
    yield "removed/many-with-a-partial", [ev.removed([12, 13, 15])]
    yield "removed/only-a-partial", [ev.removed([16])]
    yield "batch/two-events-two-messages", [ev.stored([(24, first)]), ev.removed([24])]
    yield "cleared", None


def main() -> None:
    ap = common.parser(__doc__, DEFAULT)
    ap.set_defaults(port=17081)
    args = ap.parse_args()
    p = load(args.version)
    logging.disable(logging.ERROR)
    bridge = Bridge(p, args)
    truth = common.Truth(args.truth)
    common.say(state="ready", port=args.port, version=args.version)
    if args.wait_stdin:
        sys.stdin.readline()
    else:
        time.sleep(args.start_delay)
    if args.cases:
        for case, events in cases(args.block_size):
            before = bridge.sequence
            bridge.feed(events) if events is not None else bridge.cleared()
            truth.add([before, bridge.sequence], case, events)
    else:
        ev = Events(window=4096)
        bridge.feed([ev.created()])
        w = Workload(args.seed, args.block_size, hashes="u64", capacity=args.capacity)
        begun = time.monotonic()
        for n in range(args.batches):
            if args.rate > 0:
                time.sleep(max(0.0, begun + n / args.rate - time.monotonic()))
            events = []
            for op in w.batch(args.events_per_batch):
                if op.kind == "store":
                    size = len(op.tokens) // len(op.hashes)
                    events.append(ev.stored([(h, op.tokens[i * size:(i + 1) * size]) for i, h in enumerate(op.hashes)], parent=op.parent))
                elif op.kind == "remove":
                    events.append(ev.removed(op.hashes))
            before = bridge.sequence
            bridge.feed(events)
            truth.add([before, bridge.sequence], None, events)
    common.say(state="published", messages=bridge.sequence)
    time.sleep(max(args.hold, 0.2))
    bridge.close()


if __name__ == "__main__":
    main()
