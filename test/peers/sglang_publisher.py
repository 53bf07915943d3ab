#!/usr/bin/env python3
"""SGLang's own ZmqEventPublisher, run from its wheel, fed with seeded KV events.

    sglang_publisher.py --port 17011 --replay-port 17012 --batches 100
    sglang_publisher.py --version 0.5.9 --cases --truth -
    sglang_publisher.py --source radix            the real RadixCache makes the events (0.5.23)
    sglang_publisher.py --source radix --format dynamo --salts 2 --loras 2

Fetches the engine's files where they are missing; needs pyzmq, msgspec, msgpack, pydantic (radix: numpy).
"""
from __future__ import annotations

import hashlib
import random
import struct
import time
import types
from array import array

import engine_common as common
import engine_stubs
import fake_torch
from fetch_engines import fetch
from workload import Workload

DEFAULT = "0.5.23"


def page_hashes(token_ids, prior_digest, page_size=None):
    """What SGLang's compiled page hash gives for token ids below 2^32 (checked against
    it): SHA-256 over the prior digest and the ids as 32-bit little-endian words."""
    raw = token_ids.raw_token_ids() if hasattr(token_ids, "raw_token_ids") else getattr(token_ids, "token_ids", token_ids)
    n, bigram = len(token_ids), getattr(token_ids, "is_bigram", False)
    units = [(raw[i], raw[i + 1]) if bigram else (raw[i],) for i in range(n)]
    out, prior = [], prior_digest
    for start in range(0, n, page_size or max(n, 1)):
        words = [w for u in units[start:start + (page_size or n)] for w in u]
        prior = hashlib.sha256((prior or b"") + struct.pack(f"<{len(words)}I", *words)).digest()
        out.append(prior.hex())
    return out if page_size else out[-1]


class _Envs:
    def __getattr__(self, _name):
        return types.SimpleNamespace(get=lambda: None)


def load(version: str, radix: bool = False):
    root = fetch("sglang", version)
    real = ["sglang.srt.disaggregation.kv_events", "sglang.srt.utils.network"]
    if radix:
        fake_torch.install()
        real += ["sglang.srt.mem_cache." + m for m in
                 ("events", "utils", "radix_cache", "base_prefix_cache", "cache_init_params", "evict_policy")]
    if not (root / "sglang/srt/utils/network.py").is_file():
        real.remove("sglang.srt.utils.network")
    parallel = types.SimpleNamespace(dp_rank=0, attn_dp_size=1, attn_dp_rank=0, pp_rank=0, attn_tp_rank=0, attn_cp_rank=0)
    engine_stubs.activate(root, ["sglang"], real, ["psutil"], {
        "sglang.srt.mem_cache.cpp_utils.native_hash": {"get_native_hash": page_hashes},
        "sglang.srt.utils.common": {"ceil_align": lambda a, b: (a + b - 1) // b * b},
        "sglang.srt.environ": {"envs": _Envs()},
        "sglang.srt.runtime_context": {"get_parallel": lambda: parallel},
    })
    import sglang.srt.disaggregation.kv_events as kv
    return kv


def make_publisher(kv, args):
    known = kv.ZmqEventPublisher.__init__.__annotations__
    more = {}
    for name in ("attn_dp_rank", "data_parallel_rank"):
        if name in known:
            more[name] = args.dp_rank
    if not more:
        args.port, args.replay_port = args.port + args.dp_rank, args.replay_port + args.dp_rank if args.replay_port else 0
        args.dp_rank = 0
    return kv.ZmqEventPublisher(
        endpoint=f"tcp://*:{args.port}",
        replay_endpoint=f"tcp://*:{args.replay_port}" if args.replay_port else None,
        buffer_steps=args.buffer_steps, hwm=args.hwm, topic=args.topic, **more)


def stored(kv, **fields):
    base = dict(block_hashes=[], parent_block_hash=None, token_ids=[], block_size=0, lora_id=None)
    base.update(fields)
    return kv.BlockStored(**{k: v for k, v in base.items() if k in kv.BlockStored.__struct_fields__})


def removed(kv, **fields):
    base = dict(block_hashes=[])
    base.update(fields)
    return kv.BlockRemoved(**{k: v for k, v in base.items() if k in kv.BlockRemoved.__struct_fields__})


def batch(kv, events, ts=None, rank=None):
    more = {} if rank is None else {"attn_dp_rank": rank}
    return kv.KVEventBatch(ts=time.time() if ts is None else ts, events=events, **more)


def plain(b):
    out = []
    for e in b.events:
        d = {"type": type(e).__name__}
        d.update({f: getattr(e, f) for f in e.__struct_fields__})
        if d.get("medium") is not None:
            d["medium"] = str(getattr(d["medium"], "value", d["medium"]))
        out.append(d)
    return out


def from_op(kv, op):
    if op.kind == "clear":
        return kv.AllBlocksCleared()
    if op.kind == "remove":
        return removed(kv, block_hashes=op.hashes, medium=op.medium)
    return stored(kv, block_hashes=op.hashes, parent_block_hash=op.parent, token_ids=op.tokens,
                  block_size=len(op.tokens) // len(op.hashes), medium=op.medium, cache_salt=op.salt, session_id=op.session)


def synthetic(kv, args):
    w = Workload(args.seed, args.block_size, hashes="i64", media=args.media.split(","), capacity=args.capacity, p_clear=args.p_clear)
    while True:
        yield None, batch(kv, [from_op(kv, op) for op in w.batch(args.events_per_batch)])


def radix(kv, args):
    """The real radix tree: inserts with shared prefixes, LRU eviction, a rare flush."""
    from sglang.srt.mem_cache.base_prefix_cache import EvictParams, InsertParams
    from sglang.srt.mem_cache.events import KvEventLoraNames
    from sglang.srt.mem_cache.radix_cache import RadixCache, RadixKey

    rng = random.Random(args.seed)
    size = args.block_size
    names = KvEventLoraNames()
    loras = []
    for n in range(args.loras):
        lora_id = hashlib.md5(f"lora-{n}".encode()).hexdigest()
        names.register(lora_id=lora_id, lora_name=f"lora-{n}")
        names.register(types.SimpleNamespace(lora_id=lora_id, extra_key=lora_id), f"lora-{n}")
        loras.append(lora_id)
    salts = [None] + [f"tenant-{n}" for n in range(args.salts)]
    pool = types.SimpleNamespace(device="cpu", free_segment=lambda *_a, **_k: None)
    tree = RadixCache.create_simulated(mock_allocator=pool, page_size=size, enable_kv_cache_events=True,
                                       dynamo_kv_event_format=args.format == "dynamo", kv_event_lora_names=names)
    tree.is_eagle = args.eagle
    roots = [[rng.randrange(50000) for _ in range(size * rng.randint(1, 4))] for _ in range(6)]
    while True:
        for _ in range(args.events_per_batch):
            if rng.random() < 0.005:
                tree.reset()
                continue
            tokens = rng.choice(roots) + [rng.randrange(50000) for _ in range(rng.randint(0, 4 * size))]
            key = RadixKey(token_ids=array("q", tokens), extra_key=rng.choice(loras) if loras and rng.random() < 0.4 else None,
                           cache_salt=rng.choice(salts))
            tree.insert(InsertParams(key=key))
            over = tree.evictable_size() - args.capacity * size
            if over > 0:
                tree.evict(EvictParams(num_tokens=over))
        events = tree.kv_events.take()
        if events:
            yield None, batch(kv, events)


def cases(kv, args):
    fields = kv.BlockStored.__struct_fields__
    T = list(range(100, 108))
    ts = 1764480000.25
    neg = -3488128144981237669

    def one(name, *events, ts=ts, rank=None):
        return name, batch(kv, list(events), ts, rank)

    yield one("stored/first-page", stored(kv, block_hashes=[11], token_ids=T[:4], block_size=4))
    yield one("stored/with-parent", stored(kv, block_hashes=[12], parent_block_hash=11, token_ids=T[4:], block_size=4))
    yield one("stored/two-pages", stored(kv, block_hashes=[13, 14], parent_block_hash=12, token_ids=T, block_size=4))
    yield one("stored/negative-hash-and-parent", stored(kv, block_hashes=[neg], parent_block_hash=-1, token_ids=T[:4], block_size=4))
    yield one("stored/int64-extremes", stored(kv, block_hashes=[-(2**63), 2**63 - 1], token_ids=T, block_size=4))
    yield one("stored/parent-zero", stored(kv, block_hashes=[15], parent_block_hash=0, token_ids=T[:4], block_size=4))
    yield one("stored/bigram-tokens", stored(kv, block_hashes=[16], token_ids=[(1, 2), (2, 3), (3, 4), (4, 5)], block_size=4))
    yield one("stored/short-page", stored(kv, block_hashes=[17], token_ids=T[:3], block_size=3))
    yield one("stored/lora-id", stored(kv, block_hashes=[18], token_ids=T[:4], block_size=4, lora_id=7))
    if "medium" in fields:
        media = list(getattr(kv, "StorageMedium", None) or ["GPU", "CPU_PINNED"])
        for m in media + [None]:
            name = getattr(m, "value", m)
            yield one(f"stored/medium={name}", stored(kv, block_hashes=[19], token_ids=T[:4], block_size=4, medium=m))
    if "cache_salt" in fields:
        yield one("stored/cache_salt", stored(kv, block_hashes=[20], token_ids=T[:4], block_size=4, medium=kv.StorageMedium.GPU, cache_salt="tenant-a"))
        yield one("stored/session_id", stored(kv, block_hashes=[21], token_ids=T[:4], block_size=4, medium=kv.StorageMedium.GPU, session_id="chat-42"))
    if "lora_name" in fields:
        yield one("stored/lora_name", stored(kv, block_hashes=[22], token_ids=T[:4], block_size=4, medium=kv.StorageMedium.GPU, lora_name="ad-7"))
        yield one("stored/everything", stored(kv, block_hashes=[neg, 23], parent_block_hash=22, token_ids=T, block_size=4, lora_id=7,
                                              medium=kv.StorageMedium.CPU, cache_salt="tenant-a", session_id="chat-42", lora_name="ad-7"))
        seed = kv.kv_event_namespace_seed(extra_key="k", cache_salt="tenant-a")
        yield one("stored/dynamo-namespaced-hash", stored(kv, block_hashes=[kv.namespaced_block_hash(neg, namespace_seed=seed)], token_ids=T[:4],
                                                          block_size=4, medium=kv.StorageMedium.GPU, cache_salt="tenant-a"))
    yield one("removed/one", removed(kv, block_hashes=[11]))
    yield one("removed/many", removed(kv, block_hashes=[12, 13, neg]))
    if "medium" in fields:
        for m in list(getattr(kv, "StorageMedium", None) or ["GPU", "CPU_PINNED"]) + [None]:
            yield one(f"removed/medium={getattr(m, 'value', m)}", removed(kv, block_hashes=[19], medium=m))
    yield one("cleared", kv.AllBlocksCleared())
    yield one("batch/mixed", kv.AllBlocksCleared(), stored(kv, block_hashes=[31], token_ids=T[:4], block_size=4), removed(kv, block_hashes=[31]))
    yield one("batch/no-events")
    if "attn_dp_rank" in kv.EventBatch.__struct_fields__:
        yield one("batch/rank-given", kv.AllBlocksCleared(), rank=3)


def main() -> None:
    ap = common.parser(__doc__, DEFAULT)
    ap.set_defaults(port=17011)
    ap.add_argument("--source", choices=("synthetic", "radix"), default="synthetic")
    ap.add_argument("--media", default="GPU", help="synthetic: comma list, e.g. GPU,CPU_PINNED")
    ap.add_argument("--salts", type=int, default=0, help="radix: number of cache salts besides none")
    ap.add_argument("--format", choices=("default", "dynamo"), default="default", help="radix: the engine's kv-events format")
    ap.add_argument("--eagle", action="store_true", help="radix: bigram keys (token ids come in pairs)")
    args = ap.parse_args()
    if args.source == "radix" and args.version != DEFAULT:
        ap.error(f"--source radix is set up for {DEFAULT}")
    kv = load(args.version, radix=args.source == "radix")
    source = cases(kv, args) if args.cases else radix(kv, args) if args.source == "radix" else synthetic(kv, args)
    common.run(args, lambda a: make_publisher(kv, a), plain, source,
               lambda: batch(kv, [stored(kv, block_hashes=[2**64], token_ids=[1], block_size=1)]))


if __name__ == "__main__":
    main()
