#!/usr/bin/env python3
"""Keys that released engines give their objects in Mooncake Store, beside the hashes of their KV events.

    mooncake_keys.py > test/vectors/mooncake-keys.jsonl

vLLM and SGLang hash the same tokens with their own code; LMCache gets a digest. Keys and event hashes come from the
engines' own functions, one line for each key. Fetches the engines' files where they are missing (`vllm-mooncake`:
336 MB pass through); needs msgspec, numpy, cbor2, pydantic. Each engine is a process of its own: stand-ins stay put.
"""
from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import types

import engine_stubs
import fake_torch
from fetch_engines import fetch

BLOCK = 16
TOKENS = [(7 * i) % 50_000 for i in range(3 * BLOCK)]
DIGEST = bytes(range(100, 132))


def line(package, key, event_hashes, **rest):
    """`event_hashes`: all forms in which the engine's stream can carry the hash."""
    shown = [{"$bytes": bytes(h).hex()} if isinstance(h, bytes) else {"$int": str(h)} for h in event_hashes]
    print(json.dumps({"package": package, "key": key, "event_hashes": shown, **rest}, separators=(",", ":")))


def activate_vllm():
    root = fetch("vllm-mooncake", "0.33.0")
    data = "vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store.data"
    logger = {"init_logger": lambda name: types.SimpleNamespace(**{
        n: lambda *_a, **_k: None for n in ("info", "debug", "warning", "info_once", "warning_once", "debug_once")})}
    engine_stubs.activate(root, ["vllm"], [data, "vllm.v1.core.*", "vllm.v1.kv_cache_interface", "vllm.v1.request",
                                           "vllm.v1.kv_cache_spec_registry", "vllm.v1.kv_cache_layout", "vllm.v1.utils",
                                           "vllm.utils.hashing", "vllm.utils.math_utils", "vllm.envs"],
                          ["torch", "uvloop", "PIL", "transformers", "psutil"], {"vllm.logger": logger})


def vllm():
    activate_vllm()
    import vllm.v1.core.kv_cache_utils as utils
    from vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store import data
    from vllm.utils import hashing

    def forms(block_hash):
        for integers in ("1", "0"):
            os.environ["VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES"] = integers
            yield utils.maybe_convert_block_hash(block_hash)

    def chain(name):
        function = hashing.get_hash_fn_by_name(name)
        utils.init_none_hash(function)
        hashes = []
        for at in range(0, len(TOKENS), BLOCK):
            hashes.append(utils.hash_block_tokens(function, hashes[-1] if hashes else None, TOKENS[at:at + BLOCK], None))
        return hashes

    metadata = data.KeyMetadata(model_name="Qwen3-8B", tp_rank=1, pcp_rank=0, dcp_rank=0, pp_rank=0)
    for name in ("sha256", "sha256_cbor"):
        database = data.ChunkedTokenDatabase(metadata, BLOCK)
        for block_hash in chain(name):
            line("vllm==0.33.0", database.key_for(block_hash), forms(block_hash), rank=1, model="Qwen3-8B", case=name)
    hashes = chain("sha256")
    database = data.ChunkedTokenDatabase(metadata, 3 * BLOCK, BLOCK)
    larger = data.chunk_hashes_for_block_size(hashes, BLOCK, 3 * BLOCK)[0]
    resolved = utils.BlockHashListWithBlockSize(hashes, BLOCK, 3 * BLOCK)[0]
    line("vllm==0.33.0", database.key_for(larger), forms(resolved), rank=1, model="Qwen3-8B", case="larger blocks")
    shared = data.LBHNCStoreLayout.shared_namespace(4, 1)
    for case, more in (("cache prefix", dict(cache_prefix="team@a")), ("shared among TP sizes", dict(store_namespace=shared)),
                       ("group", dict(group_id=2))):
        made = data.PoolKey(data.KeyMetadata("Qwen3-8B", 3, 0, 0, 0, **more), hashes[0].hex()).to_string()
        line("vllm==0.33.0", made, forms(hashes[0]), rank=3, model="Qwen3-8B", case=case)


def sglang():
    from sglang_publisher import _Envs, page_hashes
    root = fetch("sglang", "0.5.23")
    fake_torch.install()
    store = "sglang.srt.mem_cache.storage.mooncake_store.mooncake_store"
    engine_stubs.activate(root, ["sglang"], [store, "sglang.srt.mem_cache.utils"], ["psutil", "requests"], {
        "sglang.srt.mem_cache.cpp_utils.native_hash": {"get_native_hash": page_hashes},
        "sglang.srt.environ": {"envs": _Envs()},
    })
    import importlib
    made_by = importlib.import_module(store).MooncakeStore
    from sglang.srt.mem_cache.utils import compute_node_event_hash_values, get_storage_hash_str, hash_str_to_int64

    pages = get_storage_hash_str(TOKENS, page_size=BLOCK)
    pool = lambda count: types.SimpleNamespace(get_page_buffer_meta=lambda _i: ([0] * count, [0] * count))
    # The suffixes are those that the constructor, which wants a running store, gives for these ranks.
    for case, prefix, suffix, is_mla in (
            ("rank 1", "Qwen-Qwen3-8B", "1", False), ("rank 1, stage 2", "tag_Qwen-Qwen3-8B", "1_2", False),
            ("MLA", "deepseek", "", True), ("MLA, stage 2", "deepseek", "2", True), ("MLA, no model name", None, "", True),
            ("MLA, context parallel", "deepseek_tp2_dcp2_page16_pp1_cp1", "dcp1_cp0", True)):
        self = object.__new__(made_by)
        self.config_prefix = prefix
        self.mla_suffix = self.mha_suffix = suffix
        self.mem_pool_host = pool(len(pages) * (1 if is_mla else 2))
        tagged = self._tag_keys(pages)
        keys = (self._get_mla_buffer_meta if is_mla else self._get_mha_buffer_meta)(tagged, None)[0]
        per_page = len(keys) // len(pages)
        for index, key in enumerate(keys):
            line("sglang==0.5.23", key, [hash_str_to_int64(pages[index // per_page])], case=case)

    class Key(list):  # what the two chains read of a radix key
        extra_key = None
        cache_salt = "tenant-a"

    salted = types.SimpleNamespace(key=Key(TOKENS), parent=None, hash_value=None, event_hash_value=None)
    in_events = compute_node_event_hash_values(salted, BLOCK)
    for page, event_hash in zip(get_storage_hash_str(salted.key, page_size=BLOCK), in_events):
        line("sglang==0.5.23", f"deepseek_{page}__k", [hash_str_to_int64(event_hash)], case="salt", matches=False)


def lmcache():
    root = fetch("lmcache", "0.5.6")
    native = "lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter"
    engine_stubs.activate(root, ["lmcache"], [native, "lmcache.utils", "lmcache.v1.distributed.api",
                                              "lmcache.v1.token_database", "lmcache.logging"],
                          ["torch", "cupy", "psutil", "transformers", "cachetools"])
    logging.disable(logging.WARNING)
    import lmcache.utils as utils
    from lmcache.v1.distributed.api import ObjectKey
    from lmcache.v1.token_database import _normalize_hash_to_int
    import importlib
    to_string = importlib.import_module(native)._object_key_to_string

    dtype = "bfloat16"
    utils.TORCH_DTYPE_TO_STR_DTYPE = {dtype: dtype}
    # In the engine's process the event carries `chunk_hash` itself (cache_engine.py).
    for case, chunk in (("sha256_cbor", _normalize_hash_to_int(DIGEST)), ("leading zeros", 0xAB), ("builtin", -5)):
        made = utils.CacheEngineKey("Qwen/Qwen3-8B", 2, 1, chunk, dtype)
        line("lmcache==0.5.6", made.to_string(), [made.chunk_hash], rank=1, model="Qwen/Qwen3-8B", case=case)
    tags = {"lmcache.tag.user": "u1", "lmcache.tag.group": "g%1"}
    made = utils.CacheEngineKey("m", 2, 1, 0xAB, dtype, tags)
    line("lmcache==0.5.6", made.to_string(), [0xAB], rank=1, model="m", case="tags")
    layer = made.split_layers(3)[2]
    line("lmcache==0.5.6", layer.to_string(), [0xAB], rank=1, model="m", case="layer and tags")

    rank = ObjectKey.ComputeKVRank(2, 1, 2, 1)
    # The multiprocess server's event stream carries the digest itself.
    for case, salt in (("multiprocess", ""), ("multiprocess, salt", "tenant-a")):
        key = ObjectKey(DIGEST, "Qwen/Qwen3-8B", rank, 0, salt)
        line("lmcache==0.5.6", to_string(key), [key.chunk_hash], model="Qwen/Qwen3-8B", case=case)


if __name__ == "__main__":
    engines = {"vllm": vllm, "sglang": sglang, "lmcache": lmcache}
    if len(sys.argv) > 1:
        engines[sys.argv[1]]()
    else:
        sys.stdout.flush()
        for engine in engines:
            subprocess.run([sys.executable, __file__, engine], check=True)
