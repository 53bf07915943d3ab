"""A seeded stream of bus events: requests side by side with failures, time-outs, evictions and GPU callbacks in any order.

Each step is (name, session, metadata, seconds since the step before, seconds by which a GPU's own time is behind or None).
Metadata has the keys that the version's code publishes, tuples and objects as LMCache makes them.
"""
from __future__ import annotations

import random
import types
from collections import Counter

from lmcache_bus import chunk

MODELS = ("m1", "org/model-2")
SALTS = ("", "tenant-a", "tenant-b")
ADAPTERS = ("fs", "nixl_store")


class Workload:
    def __init__(self, event, seed: int, salts: int = 0):
        from lmcache.v1.distributed.api import ObjectKey

        self.known = event.EventType.__members__
        self.rng = random.Random(seed)
        self.ObjectKey = ObjectKey
        self.is_newest = "MP_TRANSFER_PHASE_SAMPLES" in self.known
        from lmcache._version import version_tuple

        self.version = version_tuple[:3]
        self.salts = [*SALTS, *(f"salt-{n}" for n in range(salts))]
        self.open: list[list[tuple]] = []
        self.requests = 0
        self.held: list[tuple[str, tuple]] = []
        self.tasks = 0

    def key(self, salt=None):
        salt = self.rng.choice(self.salts) if salt is None else salt
        return self.ObjectKey(chunk(self.rng.randrange(60), salt), self.rng.choice(MODELS), self.rng.randrange(2), 0, salt)

    def keys(self, most=6):
        return [self.key() for _ in range(self.rng.randint(1, most))]

    def l1(self, keys, meta=False):
        tag = self.rng.choice(("l1-0", "l1-1")) if self.is_newest else None
        out = {"l1_tag": tag, "keys": keys} if self.version >= (0, 5, 6) else {"keys": keys}
        if meta and self.version >= (0, 5, 3):
            out["meta"] = [types.SimpleNamespace(size_bytes=1 << 20, backend="dram") for _ in keys]
        return out

    def steps(self, count: int):
        rng, made = self.rng, 0
        while made < count:
            if len(self.open) < 8 and rng.random() < 0.4:
                self.open.append(self.request())
            elif self.open and rng.random() < 0.75:
                story = rng.choice(self.open)
                step = story.pop(0)
                if not story:
                    self.open.remove(story)
                # Some requests are never seen to their end.
                elif rng.random() < 0.005:
                    self.open.remove(story)
                yield from self.out(step)
                made += 1
            else:
                for step in self.background():
                    yield from self.out(step)
                    made += 1
        for story in self.open:
            for step in story:
                yield from self.out(step)

    def out(self, step):
        name, session, metadata, behind = step
        if name in self.known:
            wait = self.rng.choice((0.0, 1e-6, 1e-3, 0.02, 0.4, 1.7, 31.0)) * self.rng.random()
            yield name, session, metadata, wait, behind

    def request(self) -> list[tuple]:
        rng = self.rng
        self.requests += 1
        sid = f"r{self.requests}"
        if rng.random() < 0.25:
            return self.blend(sid)
        model, salt = rng.choice(MODELS), rng.choice(self.salts)
        tokens = rng.randrange(0, 2000, 16)
        hit = rng.randrange(0, tokens + 1, 16)
        end = dict(found_count=hit // 16, requested_tokens=tokens, hit_tokens=hit, model_name=model, cache_salt=salt)
        if self.is_newest:
            early = rng.choice(("", "", "", "no_gpu_context", "empty_chunk_hashes"))
            end.update(l1_hit_tokens=hit // 32 * 16, l2_hit_tokens=hit - hit // 32 * 16, early_exit_reason=early)
            end.update(l1_hit_keys=hit // 32, l2_hit_keys=1)
        hashes = [chunk(n, sid) for n in range(3)]
        story = [
            ("MP_REQUEST_START", sid, {}, None),
            ("MP_LOOKUP_PREFETCH_START", sid, {}, None),
            ("MP_LOOKUP", sid, dict(request_id=sid, chunk_hashes=[h.hex() for h in hashes], model_name=model, chunk_size=16,
                                    seq_len=tokens, dtypes=["bfloat16"], shapes=[[2, 16, 1024]]), None),
            ("SM_READ_PREFETCHED", "", dict(succeeded_keys=self.keys(), failed_keys=[]), None),
            ("MP_LOOKUP_PREFETCH_END", sid, end, None),
            ("MP_TOKENS", sid, dict(chunk_hashes=hashes, token_chunks=[[1, 2], [3], []], token_offsets=[0, 2, 3],
                                    parent_hashes=[None, hashes[0], hashes[1]]), None),
        ]
        callbacks: list[tuple] = []
        for device in ("cuda:0", "cuda:1")[: rng.randint(0, 2)]:
            for kind, count in (("STORE", "stored_count"), ("RETRIEVE", "retrieved_count")):
                story.append((f"MP_{kind}_SUBMITTED", sid, dict(device=device), None))
                move = dict(device=device, engine_id=rng.choice((3, 2**61 + 7)), model_name=model)
                done = dict(move, total_bytes=rng.choice((0, 3 << 20, 7 << 30)), num_tokens=48)
                done[count] = rng.randrange(4)
                if kind == "RETRIEVE":
                    done["cache_salt"] = salt
                if self.is_newest:
                    move["transfer_key"] = done["transfer_key"] = f"{sid}#0"
                if self.version < (0, 5, 2):
                    del done["num_tokens"]
                pair = [(f"MP_{kind}_START", sid, move, rng.random()), (f"MP_{kind}_END", sid, done, rng.random() / 2)]
                if rng.random() < 0.1:
                    pair.reverse()
                callbacks += pair
        if rng.random() < 0.3:
            rng.shuffle(callbacks)
        cut = rng.randint(0, len(callbacks))
        # The end of a request may come before the callbacks of its GPU work.
        return [*story, *callbacks[:cut], ("MP_REQUEST_END", sid, {}, None), *callbacks[cut:]]

    def blend(self, sid: str) -> list[tuple]:
        rng = self.rng
        story = [("CB_REQUEST_START", sid, {}, None), ("CB_LOOKUP_START", sid, dict(num_tokens=500), None)]
        for leg, start, end in (
            ("FINGERPRINT_MATCH", {}, dict(matches=rng.randrange(5))),
            ("PREFIX_LOOKUP", {}, dict(prefix_chunks=rng.randrange(5))),
            ("COORDINATOR_MATCH", {}, dict(matches=rng.randrange(5), timed_out=rng.random() < 0.3)),
            ("SPARSE_PREFETCH", dict(n_chunks=2, world_size=2, n_keys=4, l2_keys=rng.randrange(4)), dict(found_keys=rng.randrange(4), l2_keys=2)),
        ):
            story += [(f"CB_{leg}_START", sid, start, None), (f"CB_{leg}_END", sid, end, None)]
        lookup = dict(num_tokens=500, fingerprint_hits=rng.randrange(5), prefix_hits=1, storage_hits=rng.randrange(5), stale_chunks=rng.randrange(2),
                      no_gpu_context=rng.random() < 0.2, hit_tokens=32, requested_tokens=496)
        if rng.random() < 0.8 or self.is_newest:
            lookup.update(prefix_chunks=1, prefix_hit_tokens=16, segmented_prefix_hit_tokens=rng.randrange(3) * 16, non_prefix_hit_tokens=16)
        story.append(("CB_LOOKUP_END", sid, lookup, None))
        story += [(f"CB_STORE_{kind}_{what}", sid, more, None) for kind in ("PRE_COMPUTED", "FINAL") for what, more in (
            ("SUBMITTED", dict(instance_id=3)), ("START", dict(instance_id=3, num_tokens=48)),
            ("END", dict(instance_id=3, num_tokens=48, stored_chunks=3, success=rng.random() < 0.8)))]
        if rng.random() < 0.2:
            story.append(("CB_RETRIEVE_NOOP", sid, dict(reason=rng.choice(("no_slots", "no_match")), dropped_matches=2), None))
        workers: list[list[tuple]] = []
        for worker in range(rng.randint(0, 3)):
            # A GPU stream's recorder makes a text of a nil.
            who = {"worker_id": rng.choice((worker, worker, "None"))} if self.is_newest else {}
            workers.append([
                ("CB_RETRIEVE_SUBMITTED", sid, dict(instance_id=3), None),
                ("CB_RETRIEVE_START", sid, dict(num_chunks=3, model_name="m1", **who), rng.random()),
                ("CB_SCATTER_START", sid, dict(scattered_tokens=32, n_prefix=1, n_shifted=2, dropped=rng.randrange(2), **who), rng.random()),
                ("CB_SCATTER_END", sid, dict(success=1, **who) if self.is_newest else {}, rng.random() / 2),
                ("CB_RETRIEVE_END", sid, dict(success=rng.randrange(2), **who), rng.random() / 2),
            ])
        # The workers of one request are side by side.
        while any(workers):
            story.append(rng.choice([one for one in workers if one]).pop(0))
        story += [("CB_FINGERPRINTS_REGISTERED", sid, dict(num_chunks=3, num_tokens=48), None), ("CB_REQUEST_END", sid, {}, None)]
        return story

    def background(self) -> list[tuple]:
        rng = self.rng
        keys = self.keys()
        salts = Counter(k.cache_salt for k in keys)
        pick = rng.randrange(16)
        if pick < 3:
            name = rng.choice(("L1_WRITE_FINISHED", "L1_WRITE_FINISHED_AND_READ_RESERVED"))
            return [("L1_WRITE_RESERVED", "", dict(self.l1(keys), **({"tag": "store"} if self.is_newest else {})), None), (name, "", self.l1(keys, True), None)]
        if pick < 5:
            return [("L1_READ_RESERVED", "", self.l1(keys), None), ("L1_KEYS_ACCESSED", "", self.l1(keys), None), ("L1_READ_FINISHED", "", self.l1(keys), None)]
        if pick == 5:
            return [("L1_KEYS_EVICTED", "", self.l1(keys, True), None), ("L1_EVICTION_LOOP_TICK", "", dict(usage=0.91, watermark=0.9, triggered=rng.random() < 0.5), None)]
        if pick == 6:
            return self.failure(keys)
        if pick == 7:
            name = rng.choice(("SM_READ_PREFETCHED_FINISHED", "SM_WRITE_FINISHED"))
            return [("SM_WRITE_RESERVED", "", dict(succeeded_keys=keys, failed_keys=[]), None), (name, "", dict(succeeded_keys=keys, failed_keys=keys[:1]), None)]
        if pick == 8:
            return self.l2_store(keys, salts)
        if pick == 9:
            return self.l2_load(keys, salts)
        if pick in (10, 13, 14, 15):
            return [("MP_VLLM_BLOCK_ALLOCATION", "", self.allocation(), None), *(("MP_VLLM_END_SESSION", "", dict(request_id=f"v{n}"), None) for n in range(3) if rng.random() < 0.5)]
        if pick == 11:
            samples = [(rng.randrange(3), rng.randrange(3), rng.randrange(2), rng.choice((0, 0.5, 2.25)), rng.choice((0, 1 << 20, 123456)), "r1#0", 1.0, 1.5)
                       for _ in range(3)] + [(1, 1, 0)]
            return [("MP_TRANSFER_PHASE_SAMPLES", "", dict(samples=samples, ended_transfer_key="r1#0"), None), ("CB_CHUNKS_EVICTED", "", dict(num_chunks=rng.randrange(3)), None)]
        return [("L2_KEYS_EVICTED", "", dict(key_count=len(keys), key_count_per_salt=salts), None), ("L2_KEYS_STORED", "", dict(keys=keys, sizes=[1] * len(keys), backend="fs", shared=False), None),
                ("L2_KEYS_ACCESSED", "", dict(keys=keys, backend="fs", shared=True), None), ("L2_KEYS_DELETED", "", dict(keys=keys, backend="fs", shared=False), None),
                ("TRACE_CALL", "", dict(qualname="A.b", args={"n": 1, "tensor": object()}, t_mono=1.5), None), ("SM_CAPACITY_CHANGED", "", dict(snapshot=types.SimpleNamespace(modules=[])), None)]

    def failure(self, keys):
        rng = self.rng
        return rng.choice([
            [("L1_ALLOCATION_FAILED", "", dict(during=rng.choice(("l1_store", "l2_prefetch")), keys=keys), None)],
            [("L1_READ_FAILED", "", dict(during=rng.choice(("l2_store", "l1_retrieve")), reason=rng.choice(("not_found", "write_locked")), keys=keys), None)],
            [("L2_PREFETCH_FAILED", "", dict(reason=rng.choice(("l1_oom", "not_found")), keys=keys), None)],
            [("TIMEOUT_RAISED", rng.choice(("", "r1")), dict(message="late", exception_type=rng.choice(("LMCacheTimeoutError", "StoreTimeout")), stacktrace="..."), None)],
        ])

    def l2_store(self, keys, salts):
        rng = self.rng
        self.tasks += 1
        adapter = rng.randrange(2)
        task = dict(adapter_index=adapter, task_id=self.tasks, l2_name=ADAPTERS[adapter])
        done = dict(task, bytes_transferred=rng.choice((0, len(keys) << 20)), succeeded_count=len(keys), failed_count=0, key_count_per_salt=salts)
        if rng.random() < 0.2:
            done.update(succeeded_count=0, failed_count=len(keys))
            del done["key_count_per_salt"]
        steps = [("L2_STORE_SUBMITTED", "", dict(task, key_count=len(keys), total_bytes=len(keys) << 20, key_count_per_salt=salts), None), ("L2_STORE_COMPLETED", "", done, None)]
        return steps if rng.random() < 0.9 else steps[rng.randrange(2):][:1]

    def l2_load(self, keys, salts):
        rng = self.rng
        self.tasks += 1
        request = dict(request_id=self.tasks)
        steps = [("L2_PREFETCH_LOOKUP_SUBMITTED", "", dict(request, key_count=len(keys), adapter_count=2, key_count_per_salt=salts), None),
                 ("L2_PREFETCH_LOOKUP_COMPLETED", "", dict(request, prefix_hit_count=2), None),
                 ("L2_PREFETCH_LOAD_SUBMITTED", "", dict(request, key_count=len(keys), adapter_count=2, key_count_per_salt=salts), None)]
        for adapter in (0, 1):
            task = dict(request, adapter_index=adapter, task_id=self.tasks, l2_name=ADAPTERS[adapter])
            steps += [("L2_LOAD_TASK_SUBMITTED", "", dict(task, key_count=2, total_bytes=rng.choice((0, 5 << 20))), None)]
        for adapter in (1, 0):
            steps += [("L2_LOAD_TASK_COMPLETED", "", dict(request, adapter_index=adapter, task_id=self.tasks, l2_name=ADAPTERS[adapter]), None)]
        return [*steps, ("L2_PREFETCH_LOAD_COMPLETED", "", dict(request, loaded_count=len(keys), failed_count=0, key_count_per_salt=salts), None)]

    def allocation(self):
        rng = self.rng
        records = []
        for _ in range(rng.randint(1, 2)):
            blocks = rng.sample(range(8), rng.randint(0, 3))
            # Mostly the same tokens, so that a block is used again before it is evicted.
            tokens = [int(rng.random() < 0.1)] * (4 * len(blocks) - rng.randrange(2)) if blocks else []
            records.append(types.SimpleNamespace(req_id=f"v{rng.randrange(3)}", new_block_ids=blocks, new_token_ids=tokens))
        return dict(instance_id=3, model_name="m1", records=records)
