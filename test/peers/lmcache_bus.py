#!/usr/bin/env python3
"""LMCache's own EventBus, event stream, coordinator sink and metrics, from its wheel.

    lmcache_bus.py stream --port 17071         the MP server's KV event stream (ROUTER, needs a
                                               subscriber: see `follow`), seeded workload
    lmcache_bus.py follow --port 17071         a plain DEALER client of that stream, JSON lines
    lmcache_bus.py coordinator --url URL       the real HTTP sink posts to URL/events
    lmcache_bus.py dump                        every EventType through the bus, JSON lines
    lmcache_bus.py metrics                     which instruments the real subscribers move, by event
    lmcache_bus.py events                      the EventTypes of this version against the seed's list
    lmcache_bus.py vectors --out FILE

Needs fetch_engines.py to have run, and pyzmq, msgspec, msgpack, pydantic, httpx,
opentelemetry-sdk, numpy.
"""
from __future__ import annotations

import argparse
import dataclasses
import enum
import hashlib
import json
import logging
import random
import re
import signal
import sys
import threading
import time
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import engine_stubs
from fetch_engines import fetch
from wirecap import VectorFile, jsonable

DEFAULT = "0.5.6"
STOP = threading.Event()


class _Direction(enum.IntEnum):  # the native enum's members, for label names
    H2D = 0
    D2H = 1


def load(version: str):
    root = fetch("lmcache", version)
    mp = "lmcache.v1.multiprocess."
    real = ["lmcache.v1.mp_observability.*", "lmcache.v1.distributed.api", "lmcache.v1.distributed.internal_api",
            "lmcache.v1.distributed.error", "lmcache.logging", "lmcache._version", mp + "custom_types", mp + "rpc", mp + "request_handler",
            mp + "engine_module", mp + "futures", mp + "config", mp + "modules.kv_events", mp + "transport.*",
            mp + "affinity_pool", mp + "ext_server_module", mp + "protocols.*", "lmcache.v1.platform.event_notifier",
            "lmcache.v1.platform.ops_types", "lmcache.v1.mp_coordinator.cache_events", "lmcache.v1.mp_coordinator.api",
            "lmcache.v1.mp_coordinator.schemas"]
    engine_stubs.activate(root, ["lmcache"], real, ["torch", "cupy", "psutil"],
                          {"lmcache.lmcache_native": {"TransferDirection": _Direction},
                           # only named in a response schema that is not used here
                           "lmcache.v1.mp_coordinator.views.key_directory": {"Placement": dict}})
    logging.disable(logging.WARNING)
    import lmcache.v1.platform as platform
    import lmcache.v1.platform.event_notifier as notifier

    platform.create_event_notifier = notifier.create_event_notifier
    platform.EventNotifier = notifier.EventNotifier
    import lmcache.v1.mp_observability.event as event
    import lmcache.v1.mp_observability.event_bus as bus
    return event, bus


def show(x):
    """JSON form of metadata values."""
    if dataclasses.is_dataclass(x):
        return {f.name: show(getattr(x, f.name)) for f in dataclasses.fields(x)}
    if isinstance(x, enum.Enum):
        return x.value
    if isinstance(x, dict):
        return {str(k): show(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [show(v) for v in x]
    if isinstance(x, types.SimpleNamespace):
        return show(vars(x))
    return jsonable(x)


def chunk(i: int, salt: str = "") -> bytes:
    return hashlib.blake2b(f"{salt}:{i}".encode(), digest_size=32).digest()


def samples(event):
    """One (name, session, metadata) per EventType, in an order that pairs START with END.
    The keys are those that this version's code publishes."""
    from lmcache.v1.distributed.api import CapacitySnapshot, L1BackendType, ModuleMemoryCapacity, ObjectKey, Tier
    from lmcache.v1.distributed.internal_api import L1ObjectMeta

    K = [ObjectKey(chunk(i), "m1", 0, 0, "tenant-a" if i == 2 else "") for i in range(3)]
    hashes = [k.chunk_hash for k in K]
    meta = [L1ObjectMeta(1 << 20, L1BackendType.DRAM)] * 3
    salts = {"": 2, "tenant-a": 1}
    tag = {"l1_tag": "l1-0", "keys": K}
    record = types.SimpleNamespace(req_id="r1", new_block_ids=[7, 8], new_token_ids=list(range(32)))
    again = types.SimpleNamespace(req_id="r2", new_block_ids=[7, 8], new_token_ids=list(range(100, 132)))
    move = dict(device="cuda:0", engine_id=3, model_name="m1", transfer_key="r1#0")
    l2 = dict(adapter_index=0, task_id=5, l2_name="fs")
    rows = [
        ("MP_REQUEST_START", "r1", {}),
        ("MP_TOKENS", "r1", dict(chunk_hashes=hashes, token_chunks=[[1, 2], [3, 4], [5, 6]], token_offsets=[0, 2, 4], parent_hashes=[None, hashes[0], hashes[1]])),
        ("L1_WRITE_RESERVED", "", dict(tag, tag="store")), ("L1_WRITE_FINISHED", "", dict(tag, meta=meta)),
        ("L1_READ_RESERVED", "", tag), ("L1_READ_FINISHED", "", tag), ("L1_KEYS_ACCESSED", "", tag),
        ("L1_WRITE_FINISHED_AND_READ_RESERVED", "", dict(tag, meta=meta)), ("L1_KEYS_EVICTED", "", dict(tag, meta=meta)),
        ("L1_WRITE_FINISHED", "", dict(tag, meta=meta)),
        ("L1_EVICTION_LOOP_TICK", "", dict(usage=0.91, watermark=0.9, triggered=True)),
        ("L1_ALLOCATION_FAILED", "", dict(during="l1_store", keys=K)),
        ("L1_READ_FAILED", "", dict(during="l1_retrieve", reason="not_found", keys=K)),
        ("SM_WRITE_RESERVED", "", dict(succeeded_keys=K, failed_keys=[])), ("SM_WRITE_FINISHED", "", dict(succeeded_keys=K, failed_keys=[])),
        ("SM_READ_PREFETCHED_FINISHED", "", dict(succeeded_keys=K, failed_keys=[])),
        ("SM_CAPACITY_CHANGED", "", dict(snapshot=CapacitySnapshot((ModuleMemoryCapacity(Tier.L1, "dram", 1 << 30),)))),
        ("L2_STORE_SUBMITTED", "", dict(l2, key_count=3, total_bytes=3 << 20, key_count_per_salt=salts)),
        ("L2_STORE_COMPLETED", "", dict(l2, bytes_transferred=3 << 20, succeeded_count=3, failed_count=0, key_count_per_salt=salts)),
        ("L2_PREFETCH_LOOKUP_SUBMITTED", "", dict(request_id=9, key_count=3, adapter_count=1, key_count_per_salt=salts)),
        ("L2_PREFETCH_LOAD_SUBMITTED", "", dict(request_id=9, key_count=3, adapter_count=1, key_count_per_salt=salts)),
        ("L2_LOAD_TASK_SUBMITTED", "", dict(l2, request_id=9, key_count=3, total_bytes=3 << 20)),
        ("L2_LOAD_TASK_COMPLETED", "", dict(l2, request_id=9)),
        ("L2_PREFETCH_LOAD_COMPLETED", "", dict(request_id=9, loaded_count=3, failed_count=0, key_count_per_salt=salts)),
        ("L2_KEYS_STORED", "", dict(keys=K, sizes=[1 << 20] * 3, backend="fs", shared=False)),
        ("L2_KEYS_ACCESSED", "", dict(keys=K, backend="fs", shared=False)), ("L2_KEYS_DELETED", "", dict(keys=K, backend="fs", shared=False)),
        ("L2_KEYS_EVICTED", "", dict(key_count=3, key_count_per_salt=salts)),
        ("L2_PREFETCH_FAILED", "", dict(reason="not_found", keys=K)),
        ("MP_STORE_SUBMITTED", "r1", dict(device="cuda:0")), ("MP_STORE_START", "r1", move),
        ("MP_STORE_END", "r1", dict(move, stored_count=3, total_bytes=3 << 20, num_tokens=48)),
        ("MP_RETRIEVE_SUBMITTED", "r1", dict(device="cuda:0")), ("MP_RETRIEVE_START", "r1", move),
        ("MP_RETRIEVE_END", "r1", dict(move, retrieved_count=3, cache_salt="tenant-a", total_bytes=3 << 20, num_tokens=48)),
        ("MP_TRANSFER_PHASE_SAMPLES", "", dict(samples=[(1, 1, 0, 2.0, 1 << 20, "r1#0", 1.0, 1.002), (0, 1, 0, 1.0, 1 << 20, "r1#0", 1.0, 1.001)], ended_transfer_key="r1#0")),
        ("MP_LOOKUP", "r1", dict(request_id="r1", chunk_hashes=[h.hex() for h in hashes], model_name="m1", chunk_size=16, seq_len=50, dtypes=["bfloat16"], shapes=[[2, 16, 1024]])),
        ("MP_LOOKUP_PREFETCH_START", "r1", {}),
        ("MP_LOOKUP_PREFETCH_END", "r1", dict(found_count=2, requested_tokens=48, hit_tokens=32, l1_hit_tokens=16, l2_hit_tokens=16, l1_hit_keys=1, l2_hit_keys=1, early_exit_reason="", model_name="m1", cache_salt="tenant-a")),
        ("MP_LOOKUP_PREFETCH_END", "r3", dict(found_count=0, requested_tokens=0, hit_tokens=0, l1_hit_tokens=0, l2_hit_tokens=0, l1_hit_keys=0, l2_hit_keys=0, early_exit_reason="no_gpu_context", model_name="m1", cache_salt="")),
        ("MP_VLLM_BLOCK_ALLOCATION", "", dict(instance_id=3, model_name="m1", records=[record])),
        ("MP_VLLM_END_SESSION", "", dict(request_id="r1")),
        ("MP_VLLM_BLOCK_ALLOCATION", "", dict(instance_id=3, model_name="m1", records=[types.SimpleNamespace(**{**vars(record), "req_id": "r4"})])),
        ("MP_VLLM_END_SESSION", "", dict(request_id="r4")),
        ("MP_VLLM_BLOCK_ALLOCATION", "", dict(instance_id=3, model_name="m1", records=[types.SimpleNamespace(**{**vars(record), "req_id": "r5"})])),
        ("MP_VLLM_END_SESSION", "", dict(request_id="r5")),
        ("MP_VLLM_BLOCK_ALLOCATION", "", dict(instance_id=3, model_name="m1", records=[again])),
        ("MP_REQUEST_END", "r1", {}),
        ("TIMEOUT_RAISED", "r1", dict(message="late", exception_type="LMCacheTimeoutError", stacktrace="...")),
        ("TRACE_CALL", "", dict(qualname="A.b", args={"n": 1}, t_mono=1.5)),
        ("CB_REQUEST_START", "r1", {}), ("CB_LOOKUP_START", "r1", dict(num_tokens=50)),
    ]
    for leg, start, end in (("FINGERPRINT_MATCH", {}, dict(matches=2)), ("PREFIX_LOOKUP", {}, dict(prefix_chunks=1)),
                            ("COORDINATOR_MATCH", {}, dict(matches=1, timed_out=True)),
                            ("SPARSE_PREFETCH", dict(n_chunks=2, world_size=1, n_keys=2, l2_keys=2), dict(found_keys=2, l2_keys=2))):
        rows += [(f"CB_{leg}_START", "r1", start), (f"CB_{leg}_END", "r1", end)]
    rows += [
        ("CB_LOOKUP_END", "r1", dict(num_tokens=50, fingerprint_hits=2, prefix_hits=1, prefix_chunks=1, storage_hits=2, stale_chunks=1, no_gpu_context=True,
                                     prefix_hit_tokens=16, segmented_prefix_hit_tokens=0, non_prefix_hit_tokens=16, hit_tokens=32, requested_tokens=48)),
        ("CB_FINGERPRINTS_REGISTERED", "r1", dict(num_chunks=3, num_tokens=48)), ("CB_CHUNKS_EVICTED", "", dict(num_chunks=1)),
        ("CB_RETRIEVE_SUBMITTED", "r1", dict(instance_id=3)), ("CB_RETRIEVE_START", "r1", dict(num_chunks=3, model_name="m1", worker_id=0)),
        ("CB_SCATTER_START", "r1", dict(scattered_tokens=32, n_prefix=1, n_shifted=1, dropped=1, worker_id=0)),
        ("CB_SCATTER_END", "r1", dict(success=True, worker_id=0)), ("CB_RETRIEVE_END", "r1", dict(success=False, worker_id=0)),
        ("CB_RETRIEVE_NOOP", "r1", dict(reason="no_slots", dropped_matches=2)), ("CB_REQUEST_END", "r1", {}),
    ]
    known = event.EventType.__members__
    return [(n, s, m) for n, s, m in rows if n in known]


# -- the bus ---------------------------------------------------------------------


def drained(bus, seconds=10.0):
    until = time.monotonic() + seconds
    while bus.queue_depth() and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(0.02)


def dump(a) -> list[dict]:
    event, busmod = load(a.version)
    bus = busmod.EventBus(busmod.EventBusConfig(enabled=True, max_queue_size=a.queue_size))
    got = []
    for t in event.EventType:
        bus.subscribe(t, lambda e: got.append({
            "event_type": e.event_type.value, "name": e.event_type.name, "timestamp": e.timestamp,
            "session_id": e.session_id, "metadata": show(e.metadata)}))
    bus.start()
    for name, session, metadata in samples(event):
        bus.publish(event.Event(event.EventType[name], metadata=metadata, session_id=session))
    drained(bus)
    bus.stop()
    missing = sorted(set(event.EventType.__members__) - {g["name"] for g in got})
    if missing:
        print("no sample for", missing, file=sys.stderr)
    return got


def seed_names(path: str) -> set[str]:
    with open(path) as f:
        return set(re.findall(r"^\| `([A-Z0-9_]+)`", f.read(), re.M))


def compare(a) -> dict:
    event, _ = load(a.version)
    mine = set(event.EventType.__members__)
    seed = seed_names(a.seed_file) if a.seed_file else set()
    return {"version": a.version, "count": len(mine), "values": {t.name: t.value for t in event.EventType},
            "in_seed_not_here": sorted(seed - mine) if seed else None, "here_not_in_seed": sorted(mine - seed) if seed else None}


def metrics(a) -> dict:
    """Publish each event alone and see which data points moved."""
    from opentelemetry import metrics as otel
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    otel.set_meter_provider(MeterProvider(metric_readers=[reader]))
    event, busmod = load(a.version)
    import lmcache.v1.mp_observability.subscribers.metrics as subs

    bus = busmod.EventBus(busmod.EventBusConfig(enabled=True))
    owners = {}
    for name in sorted(n for n in dir(subs) if n.endswith("Subscriber")):
        cls = getattr(subs, name)
        more = {"sample_rate": 1.0} if "Lifecycle" in name else {}
        sub = cls(bus) if name == "EventBusSelfMetricsSubscriber" else cls(**more)
        for t in sub.get_subscriptions():
            owners.setdefault(t.name, []).append(name)
        bus.register_subscriber(sub)
    bus.start()

    def snapshot():
        out = {}
        data = reader.get_metrics_data()
        for rm in data.resource_metrics if data else []:
            for sm in rm.scope_metrics:
                for m in sm.metrics:
                    kind = type(m.data).__name__
                    kind = {"Sum": "counter" if getattr(m.data, "is_monotonic", False) else "updowncounter"}.get(kind, kind.lower())
                    for p in m.data.data_points:
                        value = (p.count, round(p.sum, 9)) if hasattr(p, "count") else p.value
                        out[(sm.scope.name, m.name, m.unit or "", kind, tuple(sorted(p.attributes.items())))] = value
        return out

    table: dict[str, dict] = {}
    before = snapshot()
    for name, session, metadata in samples(event):
        time.sleep(0.002)
        bus.publish(event.Event(event.EventType[name], metadata=metadata, session_id=session))
        drained(bus)
        after = snapshot()
        for key, value in after.items():
            if before.get(key) != value and not key[1].startswith("lmcache_mp.event_bus"):
                meter, metric, unit, kind, attrs = key
                row = table.setdefault(metric, {"type": kind, "unit": unit, "meter": meter, "labels": [], "events": []})
                row["labels"] = sorted(set(row["labels"]) | {k for k, _ in attrs})
                if name not in row["events"]:
                    row["events"].append(name)
        before = after
    for key in before:
        if key[1].startswith("lmcache_mp.event_bus"):
            table.setdefault(key[1], {"type": key[3], "unit": key[2], "meter": key[0], "labels": [k for k, _ in key[4]], "events": ["(observed at each scrape)"]})
    bus.stop()
    errors = bus.subscriber_exception_counts()
    if errors:
        print("subscriber errors:", errors, file=sys.stderr)
    return {"version": a.version, "metrics": dict(sorted(table.items())), "subscribers": owners}


# -- the KV event stream -----------------------------------------------------------


class StreamServer:
    """The real KVEventModule behind the real ROUTER server."""

    def __init__(self, version: str, port: int, log_size: int, queue_size: int = 10_000, enabled=True):
        import zmq

        self.event, busmod = load(version)
        from lmcache.v1.multiprocess.modules.kv_events import KVEventModule
        from lmcache.v1.multiprocess.transport.zmq_impl.mq import MessageQueueServer
        from lmcache.v1.multiprocess.transport.zmq_impl.server import add_handler_helper, get_zmq_handler_specs

        self.bus = busmod.EventBus(busmod.EventBusConfig(enabled=enabled, max_queue_size=queue_size))
        self.bus.start()
        self.module = KVEventModule(types.SimpleNamespace(event_bus=self.bus), kv_event_log_size=log_size)
        self.server = MessageQueueServer(f"tcp://127.0.0.1:{port}", zmq.Context.instance())
        for spec in get_zmq_handler_specs(self.module):
            add_handler_helper(self.server, spec.operation, spec.handler, spec.handler_type)
        self.server.start()
        from lmcache.v1.distributed.api import L1BackendType, ObjectKey
        from lmcache.v1.distributed.internal_api import L1ObjectMeta

        self.ObjectKey = ObjectKey
        self.meta = L1ObjectMeta(1 << 20, L1BackendType.DRAM)

    def publish(self, name, session="", **metadata):
        self.bus.publish(self.event.Event(self.event.EventType[name], metadata=metadata, session_id=session))

    def store(self, hashes, tokens, parents, model="m1", ranks=(0,), bind=True, name="L1_WRITE_FINISHED", salt=""):
        if bind:
            offset, offsets = 0, []
            for t in tokens:
                offsets.append(offset)
                offset += len(t)
            self.publish("MP_TOKENS", chunk_hashes=hashes, token_chunks=tokens, token_offsets=offsets, parent_hashes=parents)
        keys = [self.ObjectKey(h, model, r, 0, salt) for h in hashes for r in ranks]
        self.publish(name, l1_tag="l1-0", keys=keys, meta=[self.meta] * len(keys))

    def evict(self, hashes, model="m1", ranks=(0,)):
        keys = [self.ObjectKey(h, model, r) for h in hashes for r in ranks]
        self.publish("L1_KEYS_EVICTED", l1_tag="l1-0", keys=keys, meta=[self.meta] * len(keys))

    def close(self):
        self.module.close()
        self.server.close()
        self.bus.stop()


class StreamClient:
    """A DEALER that speaks the stream by hand: one credit a batch."""

    def __init__(self, port: int, uid: int = 1):
        import msgspec
        import zmq

        self.pack, self.unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
        self.sock = zmq.Context.instance().socket(zmq.DEALER)
        self.sock.connect(f"tcp://127.0.0.1:{port}")
        self.uid = self.pack(uid)

    def subscribe(self, instance=1, model="m1", cursor=0, page=1024):
        frames = [self.uid, self.pack("subscribe_kv_events"), self.pack(instance), self.pack(model), self.pack(cursor), self.pack(page)]
        self.sock.send_multipart(frames)
        return frames

    def control(self, word: bytes):
        frames = [self.uid, b"", word]
        self.sock.send_multipart(frames)
        return frames

    def read(self, seconds=1.0):
        return self.sock.recv_multipart() if self.sock.poll(int(seconds * 1000)) else None

    def decode(self, frames) -> dict:
        if len(frames) == 2:
            return {"kind": "rpc-end", "uid": self.unpack(frames[0]), "operation": self.unpack(frames[1])}
        return {"kind": "rpc-batch", "uid": self.unpack(frames[0]), "operation": self.unpack(frames[1]), "payload": jsonable(self.unpack(frames[2]))}

    def close(self):
        self.sock.close(0)


def stream(a) -> None:
    srv = StreamServer(a.version, a.port, a.log_size)
    print(json.dumps({"state": "ready", "port": a.port, **srv.module.report_status()["kv_events"]}), file=sys.stderr, flush=True)
    if a.wait_stdin:
        sys.stdin.readline()
    else:
        STOP.wait(a.start_delay)
    rng = random.Random(a.seed)
    live, parent_of, kids, n, done = [], {}, {}, 0, 0
    begun = time.monotonic()
    while not STOP.is_set() and (not a.batches or done < a.batches):
        if a.rate > 0:
            lag = begun + done / a.rate - time.monotonic()
            if lag > 0 and STOP.wait(lag):
                break
        if a.restart_at and done == a.restart_at:
            drained(srv.bus)
            srv.close()
            srv = StreamServer(a.version, a.port, a.log_size)
            live, parent_of, kids = [], {}, {}
        for _ in range(a.events_per_batch):
            leaves = [h for h in rng.sample(live, min(8, len(live))) if not kids.get(h)]
            if leaves and rng.random() < 0.3:
                h = leaves[0]
                live.remove(h)
                p = parent_of.pop(h)
                if p is not None:
                    kids[p] -= 1
                srv.evict([h], ranks=range(a.ranks))
            else:
                parent = rng.choice(live) if live and rng.random() < 0.7 else None
                hashes, tokens, parents = [], [], []
                for _c in range(rng.randint(1, 4)):
                    n += 1
                    h = chunk(n, f"seed{a.seed}")
                    hashes.append(h)
                    parents.append(parent)
                    tokens.append([rng.randrange(50000) for _t in range(a.block_size)])
                    parent_of[h] = parent
                    if parent is not None:
                        kids[parent] = kids.get(parent, 0) + 1
                    live.append(h)
                    parent = h
                srv.store(hashes, tokens, parents, ranks=range(a.ranks))
        drained(srv.bus) if a.rate else None
        done += 1
    drained(srv.bus)
    print(json.dumps({"state": "published", **srv.module.report_status()["kv_events"], "dropped": srv.bus.dropped_events_count()}), file=sys.stderr, flush=True)
    if a.hold < 0:
        threading.Thread(target=lambda: (sys.stdin.read(), STOP.set()), daemon=True).start()
        STOP.wait()
    else:
        STOP.wait(a.hold)
    srv.close()


def follow(a) -> None:
    c = StreamClient(a.port)
    c.subscribe(cursor=a.cursor)
    until = time.monotonic() + a.seconds
    while time.monotonic() < until and not STOP.is_set():
        frames = c.read(0.2)
        if frames:
            print(json.dumps(c.decode(frames)), flush=True)
            if len(frames) == 2:
                break
            c.control(b"ack")
    c.control(b"cancel")
    c.close()


# -- the coordinator sink ------------------------------------------------------------


def catcher(port: int):
    """An HTTP server that keeps what is posted to /events."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers.get("Content-Type"), body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_a):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, got


def coordinator(a, url=None, interval=None) -> None:
    event, busmod = load(a.version)
    from lmcache.v1.mp_coordinator.cache_events import CacheEventSubscriber, HttpCacheEventSink

    bus = busmod.EventBus(busmod.EventBusConfig(enabled=True))
    bus.register_subscriber(CacheEventSubscriber(HttpCacheEventSink(url or a.url), a.instance_id, 1764480000,
                                                 a.flush_interval if interval is None else interval))
    bus.start()
    for name, session, metadata in samples(event):
        bus.publish(event.Event(event.EventType[name], metadata=metadata, session_id=session))
    drained(bus)
    bus.stop()


# -- vectors -----------------------------------------------------------------------


def vectors(a) -> int:
    out = VectorFile(a.out, "lmcache", a.version)
    for e in dump(a):
        e.pop("timestamp")
        out.add("bus/" + e["name"], [], {"kind": "bus-event", **e})

    srv = StreamServer(a.version, a.port, 16)
    c = StreamClient(a.port, uid=7)

    def send(case, frames):
        out.add(case, frames, {"kind": "rpc-request", "parts": [jsonable(c.unpack(f)) if f and f not in (b"ack", b"cancel") else f.decode() for f in frames]})

    def read(case, seconds=1.5):
        frames = c.read(seconds)
        if frames is None:
            out.add(case, [], {"kind": "nothing", "payload": None})
        else:
            out.add(case, frames, c.decode(frames))
        return frames

    h = [chunk(i) for i in range(40)]
    send("stream/subscribe", c.subscribe())
    read("stream/first-batch-is-status")
    srv.store(h[:3], [[1, 2], [3, 4], [5, 6]], [None, h[0], h[1]])
    read("stream/no-credit-no-batch", 0.4)
    send("stream/ack", c.control(b"ack"))
    read("stream/stored")
    c.control(b"ack")
    srv.store([h[3]], [[7, 8]], [h[2]], ranks=(0, 1), name="L1_WRITE_FINISHED_AND_READ_RESERVED")
    read("stream/stored-two-ranks-one-record")
    c.control(b"ack")
    srv.store([h[3]], [[7, 8]], [h[2]])
    read("stream/stored-again")
    c.control(b"ack")
    srv.evict([h[0], h[1]])
    read("stream/removed")
    c.control(b"ack")
    srv.store([h[4]], [[1, 2]], [None], bind=False)
    srv.store([h[5]], [[9, 9]], [None], model="other-model")
    read("stream/unbound-store-and-other-model", 0.4)
    srv.evict([h[2]])
    read("stream/removed-after-skipped")
    send("stream/cancel", c.control(b"cancel"))
    read("stream/end")
    c.close()

    c = StreamClient(a.port, uid=8)
    c.subscribe(cursor=0, page=2)
    read("stream/resubscribe-from-0/page-of-2#1")
    c.control(b"ack")
    read("stream/resubscribe-from-0/page-of-2#2")
    c.control(b"cancel")
    read("stream/resubscribe-from-0/end")
    c.close()
    for i in range(6, 30):
        srv.store([h[i]], [[i, i]], [None])
    drained(srv.bus)
    c = StreamClient(a.port, uid=9)
    c.subscribe(cursor=2, page=1)
    read("stream/cursor-before-the-log/lost")
    c.control(b"cancel")
    read("stream/cursor-before-the-log/end")
    c.close()
    c = StreamClient(a.port, uid=10)
    c.subscribe(cursor=10_000)
    read("stream/cursor-beyond-the-log/lost")
    second = StreamClient(a.port, uid=11)
    second.subscribe(cursor=10_000)
    read("stream/second-subscriber-of-the-instance-ends-the-first")
    second.close()
    c.close()
    s = srv.module.report_status()
    out.add("stream/report_status", [json.dumps(s).encode()], {"kind": "status", "payload": jsonable(s)})
    srv.close()
    srv = StreamServer(a.version, a.port + 3, 64, queue_size=2)
    c = StreamClient(a.port + 3, uid=13)
    c.subscribe()
    read("stream/overflow/first-batch-is-status")
    held = srv.bus.subscribe  # hold the drain thread so that the bus queue fills
    gate = threading.Event()
    held(srv.event.EventType.MP_REQUEST_START, lambda _e: gate.wait(5))
    srv.publish("MP_REQUEST_START")
    time.sleep(0.2)
    for i in range(30, 36):
        srv.store([h[i]], [[i, i]], [None])
    c.control(b"ack")
    gate.set()
    read("stream/overflow/lost")
    c.control(b"ack")
    read("stream/overflow/after", 0.5)
    s = srv.module.report_status()
    out.add("stream/overflow/report_status", [json.dumps(s).encode()], {"kind": "status", "payload": jsonable(s)})
    c.close()
    srv.close()
    srv = StreamServer(a.version, a.port + 1, 0)
    c = StreamClient(a.port + 1, uid=12)
    c.subscribe()
    read("stream/disabled-server")
    c.control(b"ack")
    read("stream/disabled-server/end")
    c.close()
    srv.close()

    http, got = catcher(a.port + 2)
    coordinator(a, f"http://127.0.0.1:{a.port + 2}", 0.0)
    http.shutdown()
    for path, kind, body in got:
        d = json.loads(body)
        case = "+".join(f"{b['event_type']}/{b['tier']}" for b in d["batches"])
        out.add(f"coordinator/{case}", [body], {"kind": "http-post", "path": path, "content_type": kind, "payload": d})
    return out.write()


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("mode", choices=("stream", "follow", "coordinator", "dump", "metrics", "events", "vectors"))
    ap.add_argument("--version", default=DEFAULT)
    ap.add_argument("--port", type=int, default=17071)
    ap.add_argument("--batches", type=int, default=50, help="stream: steps, 0: until stopped")
    ap.add_argument("--rate", type=float, default=0.0)
    ap.add_argument("--events-per-batch", type=int, default=3)
    ap.add_argument("--block-size", type=int, default=16, help="stream: tokens a chunk")
    ap.add_argument("--ranks", type=int, default=1, help="stream: KV ranks per chunk")
    ap.add_argument("--log-size", type=int, default=32768)
    ap.add_argument("--queue-size", type=int, default=10_000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--restart-at", type=int, default=0)
    ap.add_argument("--start-delay", type=float, default=1.0)
    ap.add_argument("--wait-stdin", action="store_true")
    ap.add_argument("--hold", type=float, default=0.5)
    ap.add_argument("--cursor", type=int, default=0)
    ap.add_argument("--seconds", type=float, default=10.0)
    ap.add_argument("--url", default="http://127.0.0.1:9300")
    ap.add_argument("--instance-id", default="lmcache-1")
    ap.add_argument("--flush-interval", type=float, default=1.0)
    ap.add_argument("--seed-file", help="events: the seed text with the metadata tables")
    ap.add_argument("--out")
    a = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    signal.signal(signal.SIGINT, lambda *_: STOP.set())
    if a.mode == "dump":
        for e in dump(a):
            print(json.dumps(e))
    elif a.mode in ("metrics", "events"):
        print(json.dumps(metrics(a) if a.mode == "metrics" else compare(a), indent=1))
    elif a.mode == "vectors":
        print(vectors(a), "lines")
    else:
        {"stream": stream, "follow": follow, "coordinator": coordinator}[a.mode](a)


if __name__ == "__main__":
    main()
