#!/usr/bin/env python3
"""vLLM's own ZmqEventPublisher, run from its wheel, fed with seeded KV events.

    vllm_publisher.py --port 17001 --replay-port 17002 --batches 100
    vllm_publisher.py --version 0.9.2 --cases --truth -
    vllm_publisher.py --source manager      the real KVCacheManager makes the events (0.33.0)

Fetches the engine's files where they are missing; needs pyzmq, msgspec, msgpack (manager: numpy, cbor2).
"""
from __future__ import annotations

import dataclasses
import logging
import os
import random
import time

import engine_common as common
import engine_stubs
from fetch_engines import fetch
from workload import Workload

DEFAULT = "0.33.0"


def _config(cls=None, **_k):
    return dataclasses.dataclass(cls) if cls is not None else _config


def _init_logger(name):
    log = logging.getLogger(name)
    for once in ("info_once", "warning_once", "debug_once"):
        setattr(log, once, lambda *_a, **_k: None)
    return log


class _StructuredOutputRequest:
    @staticmethod
    def from_sampling_params(_p):
        return None


def load(version: str, manager: bool = False):
    """The real vllm.distributed.kv_events of that version."""
    root = fetch("vllm", version)
    real = ["vllm.distributed.kv_events", "vllm.config.kv_events"]
    if not (root / "vllm/config/kv_events.py").is_file():
        real.remove("vllm.config.kv_events")
    if manager:
        real += ["vllm.v1.core.*", "vllm.v1.kv_cache_interface", "vllm.v1.kv_cache_spec_registry",
                 "vllm.v1.kv_cache_layout", "vllm.v1.request", "vllm.v1.utils", "vllm.utils.hashing",
                 "vllm.utils.math_utils", "vllm.envs", "vllm.v1.hisparse.block_pool", "vllm.v1.metrics.stats",
                 "vllm.multimodal.utils"]
    engine_stubs.activate(root, ["vllm"], real, ["torch", "uvloop", "PIL", "transformers", "psutil"], {
        "vllm.config.utils": {"config": _config},
        "vllm.logger": {"init_logger": _init_logger},
        "vllm.v1.core.kv_cache_utils": {"ExternalBlockHash": bytes | int},
        "vllm.utils": {"length_from_prompt_token_ids_or_embeds": lambda ids, _e: len(ids)},
        "vllm.v1.structured_output.request": {"StructuredOutputRequest": _StructuredOutputRequest},
    })
    import vllm.distributed.kv_events as kv
    return kv


def make_publisher(kv, args):
    rank = args.dp_rank
    more = {} if "data_parallel_rank" not in kv.ZmqEventPublisher.__init__.__annotations__ else {"data_parallel_rank": rank}
    if not more:  # 0.9.0: no ranks yet
        args.port, args.replay_port = args.port + rank, args.replay_port + rank if args.replay_port else 0
        args.dp_rank = 0
    return kv.ZmqEventPublisher(
        endpoint=f"tcp://*:{args.port}",
        replay_endpoint=f"tcp://*:{args.replay_port}" if args.replay_port else None,
        buffer_steps=args.buffer_steps, hwm=args.hwm, topic=args.topic, **more)


def stored(kv, **fields):
    """BlockStored with the fields that this version has."""
    base = dict(block_hashes=[], parent_block_hash=None, token_ids=[], block_size=0, lora_id=None, medium="GPU", lora_name=None)
    base.update(fields)
    return kv.BlockStored(**{k: v for k, v in base.items() if k in kv.BlockStored.__struct_fields__})


def removed(kv, **fields):
    base = dict(block_hashes=[], medium="GPU")
    base.update(fields)
    return kv.BlockRemoved(**{k: v for k, v in base.items() if k in kv.BlockRemoved.__struct_fields__})


def batch(kv, events, ts=None, rank=None):
    more = {} if rank is None else {"data_parallel_rank": rank}
    return kv.KVEventBatch(ts=time.time() if ts is None else ts, events=events, **more)


def plain(b):
    out = []
    for e in b.events:
        d = {"type": type(e).__name__}
        d.update({f: getattr(e, f) for f in e.__struct_fields__})
        out.append(d)
    return out


def from_op(kv, op):
    if op.kind == "clear":
        return kv.AllBlocksCleared()
    if op.kind == "remove":
        return removed(kv, block_hashes=op.hashes, medium=op.medium, **({"group_idx": 0}))
    n = len(op.hashes)
    keys = [k for k in (op.lora_name, op.salt) if k]
    return stored(kv, block_hashes=op.hashes, parent_block_hash=op.parent, token_ids=op.tokens,
                  block_size=len(op.tokens) // n, lora_id=op.lora_id, medium=op.medium, lora_name=op.lora_name,
                  extra_keys=[tuple(keys) if keys else None] * n, group_idx=0, kv_cache_spec_kind="full_attention",
                  session_id=op.session)


def synthetic(kv, args):
    has_bytes = "medium" in kv.BlockStored.__struct_fields__
    w = Workload(args.seed, args.block_size, hashes="bytes" if args.hashes == "bytes" and has_bytes else "u64",
                 media=args.media.split(","), loras=args.loras, capacity=args.capacity, p_clear=args.p_clear)
    while True:
        yield None, batch(kv, [from_op(kv, op) for op in w.batch(args.events_per_batch)])


def manager(kv, args):
    """The real prefix cache: requests with shared prefixes come, grow, end and are
    evicted; each take_events() is one batch, as the scheduler makes them."""
    if args.hashes == "bytes":
        os.environ["VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES"] = "0"
    import torch
    import vllm.v1.kv_cache_interface as ki
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.request import Request

    class Params:
        max_tokens = 64
        extra_args = None
        skip_reading_prefix_cache = None
        prompt_logprobs = None

    class Lora:
        def __init__(self, n):
            self.adapter_id = self.lora_int_id = n
            self.name = self.lora_name = f"lora-{n}"
            self.lora_path = f"adapters/{n}"

    rng = random.Random(args.seed)
    size = args.block_size
    init_none_hash(sha256)
    hasher = get_request_block_hasher(size, sha256)
    common_spec = dict(block_size=size, num_kv_heads=1, head_size=1, dtype=torch.float16)
    groups = [ki.KVCacheGroupSpec(["full"], ki.FullAttentionSpec(**common_spec))]
    if args.groups > 1:
        groups.append(ki.KVCacheGroupSpec(["window"], ki.SlidingWindowSpec(**common_spec, sliding_window=2 * size)))
    blocks = max(64, args.capacity)
    cache = KVCacheManager(ki.KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups),
                           max_model_len=1 << 20, scheduler_block_size=size, hash_block_size=size,
                           enable_kv_cache_events=True)
    roots = [[rng.randrange(50000) for _ in range(size * rng.randint(1, 4))] for _ in range(6)]
    n = 0
    while True:
        for _ in range(args.events_per_batch):
            n += 1
            if rng.random() < 0.01:
                cache.reset_prefix_cache()
                continue
            prompt = rng.choice(roots) + [rng.randrange(50000) for _ in range(rng.randint(0, 3 * size))]
            lora = Lora(rng.randint(1, args.loras)) if args.loras and rng.random() < 0.4 else None
            r = Request(f"r{n}", prompt, Params(), None, block_hasher=hasher, lora_request=lora, session_id=f"s{n % 7}",
                        cache_salt="tenant-a" if rng.random() < 0.1 else None)
            hit_blocks, hits = cache.get_computed_blocks(r)[:2]
            if cache.allocate_slots(r, len(prompt) - hits, hits, hit_blocks) is None:
                continue
            r.num_computed_tokens = len(prompt)
            for _step in range(rng.randint(0, 2 * size)):
                r.append_output_token_ids(rng.randrange(50000))
                if cache.allocate_slots(r, 1) is None:
                    break
                r.num_computed_tokens += 1
            cache.free(r)
        events = cache.take_events()
        if events:
            yield None, batch(kv, events)


def cases(kv, args):
    """One batch for every event kind and field combination of this version."""
    fields = kv.BlockStored.__struct_fields__
    T = list(range(100, 100 + 8))
    ts = 1764480000.25
    big = 0xF00DFACE12345678

    def one(name, *events, ts=ts, rank=None):
        return name, batch(kv, list(events), ts, rank)

    yield one("stored/first-block", stored(kv, block_hashes=[11], token_ids=T[:4], block_size=4))
    yield one("stored/with-parent", stored(kv, block_hashes=[12], parent_block_hash=11, token_ids=T[4:], block_size=4))
    yield one("stored/two-blocks", stored(kv, block_hashes=[13, 14], parent_block_hash=12, token_ids=T, block_size=4))
    yield one("stored/hash-above-int63", stored(kv, block_hashes=[big], parent_block_hash=2**64 - 1, token_ids=T[:4], block_size=4))
    yield one("stored/hash-negative", stored(kv, block_hashes=[-(2**63), -1], token_ids=T, block_size=4))
    yield one("stored/lora-id", stored(kv, block_hashes=[15], token_ids=T[:4], block_size=4, lora_id=7, lora_name="ad-7"))
    yield one("stored/token-ids-large", stored(kv, block_hashes=[16], token_ids=[0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1], block_size=8))
    if "medium" in fields:
        h32 = bytes(range(32))
        yield one("stored/hash-bytes", stored(kv, block_hashes=[h32], token_ids=T[:4], block_size=4))
        yield one("stored/hash-bytes-parent-bytes", stored(kv, block_hashes=[h32[::-1]], parent_block_hash=h32, token_ids=T[:4], block_size=4))
        for m in ("GPU", "CPU", "STORAGE", "FS", "OBJ", "cpu", None):
            yield one(f"stored/medium={m}", stored(kv, block_hashes=[17], token_ids=T[:4], block_size=4, medium=m))
        yield one("stored/offload-placeholder", stored(kv, block_hashes=[18], medium="CPU"))
        yield one("stored/no-blocks", stored(kv, token_ids=T[:4], block_size=4))
    if "extra_keys" in fields:
        for name, keys in (("null-entries", [None, None]), ("salt-first-block", [("tenant-a",), None]),
                           ("lora-name", [("ad-7",), ("ad-7",)]), ("mm", [("img-hash", 3), None]),
                           ("mm-pairs", [(("img-hash", 0), ("img2", -5)), (("img2", 4),)]),
                           ("digest-bytes", [(b"\x01\x02\xff",), None]), ("empty-list", [])):
            yield one(f"stored/extra_keys/{name}", stored(kv, block_hashes=[19, 20], token_ids=T, block_size=4, extra_keys=keys))
    if "group_idx" in fields:
        yield one("stored/group_idx=0", stored(kv, block_hashes=[21], token_ids=T[:4], block_size=4, group_idx=0))
        yield one("stored/group_idx=1", stored(kv, block_hashes=[21], token_ids=T[:4], block_size=4, group_idx=1))
    if "kv_cache_spec_kind" in fields:
        for kind, window in (("full_attention", None), ("sliding_window", 4096), ("mamba", None), ("mla_attention", None)):
            yield one(f"stored/spec={kind}", stored(kv, block_hashes=[22], token_ids=T[:4], block_size=4, group_idx=1,
                                                    kv_cache_spec_kind=kind, kv_cache_spec_sliding_window=window))
        yield one("stored/masked-window", stored(kv, block_hashes=[23], parent_block_hash=22, token_ids=T, block_size=4,
                                                 group_idx=1, extra_keys=[None], kv_cache_spec_kind="sliding_window",
                                                 kv_cache_spec_sliding_window=8))
    if "locality" in fields:
        yield one("stored/locality=LOCAL", stored(kv, block_hashes=[24], token_ids=T[:4], block_size=4, medium="CPU", locality="LOCAL"))
        yield one("stored/locality=REMOTE", stored(kv, block_hashes=[24], token_ids=T[:4], block_size=4, medium="STORAGE", locality="REMOTE"))
    if "ownership" in fields:
        yield one("stored/ownership", stored(kv, block_hashes=[25], token_ids=T[:4], block_size=4, medium="STORAGE", locality="REMOTE", ownership="fs-0"))
    if "session_id" in fields:
        yield one("stored/session_id", stored(kv, block_hashes=[26], token_ids=T[:4], block_size=4, session_id="chat-42"))
    if "lookahead_token_ids" in fields:
        yield one("stored/lookahead", stored(kv, block_hashes=[27, 28], token_ids=T, block_size=4, lookahead_token_ids=[[900], [901, 902]]))
    if len(fields) > 7:
        yield one("stored/everything", stored(
            kv, block_hashes=[29, big], parent_block_hash=28, token_ids=T, block_size=4, lora_id=7, medium="GPU",
            lora_name="ad-7", extra_keys=[("ad-7", ("img", 0), "salt"), ("ad-7",)], group_idx=0,
            kv_cache_spec_kind="full_attention", kv_cache_spec_sliding_window=None, locality="LOCAL", ownership="cpu-0",
            session_id="chat-42", lookahead_token_ids=[[1], [2]]))
    yield one("removed/one", removed(kv, block_hashes=[11]))
    yield one("removed/many", removed(kv, block_hashes=[12, 13, 14, big]))
    yield one("removed/none", removed(kv))
    rf = kv.BlockRemoved.__struct_fields__
    if "medium" in rf:
        yield one("removed/hash-bytes", removed(kv, block_hashes=[bytes(range(32))]))
        for m in ("CPU", "STORAGE", None):
            yield one(f"removed/medium={m}", removed(kv, block_hashes=[17], medium=m))
    if "group_idx" in rf:
        yield one("removed/group_idx=1", removed(kv, block_hashes=[21], group_idx=1))
    if "ownership" in rf:
        yield one("removed/locality-ownership", removed(kv, block_hashes=[25], medium="STORAGE", group_idx=0, locality="REMOTE", ownership="fs-0"))
    yield one("cleared", kv.AllBlocksCleared())
    yield one("batch/mixed", stored(kv, block_hashes=[31], token_ids=T[:4], block_size=4), removed(kv, block_hashes=[31]),
              kv.AllBlocksCleared(), stored(kv, block_hashes=[32], token_ids=T[:4], block_size=4))
    yield one("batch/no-events")
    yield one("batch/whole-second-ts", kv.AllBlocksCleared(), ts=1764480000.0)
    if "data_parallel_rank" in kv.EventBatch.__struct_fields__:
        yield one("batch/rank-given", kv.AllBlocksCleared(), rank=3)


def main() -> None:
    ap = common.parser(__doc__, DEFAULT)
    ap.add_argument("--hashes", choices=("int", "bytes"), default="int", help="64-bit integers (the engine's default) or 32 raw bytes (since 0.10.2)")
    ap.add_argument("--source", choices=("synthetic", "manager"), default="synthetic")
    ap.add_argument("--media", default="GPU", help="synthetic: comma-separated, a chain is on one of them")
    ap.add_argument("--groups", type=int, default=1, help="manager: 2 adds a sliding-window cache group")
    args = ap.parse_args()
    if args.source == "manager" and args.version != DEFAULT:
        ap.error(f"--source manager is set up for {DEFAULT}")
    kv = load(args.version, manager=args.source == "manager")
    source = cases(kv, args) if args.cases else manager(kv, args) if args.source == "manager" else synthetic(kv, args)
    common.run(args, lambda a: make_publisher(kv, a), plain, source,
               lambda: batch(kv, [stored(kv, block_hashes=[2**64], token_ids=[1], block_size=1)]))


if __name__ == "__main__":
    main()
