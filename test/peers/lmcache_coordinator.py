#!/usr/bin/env python3
"""LMCache's coordinator and the servers that report to it, without a GPU. Commands as in peer_commands.py.

    lmcache_coordinator.py server --url http://127.0.0.1:9300 --instance-id mp-1 [--incarnation 1000]
        what an MP server reports with: the real EventBus, CacheEventSubscriber and HttpCacheEventSink, and the real
        keep_registered
    lmcache_coordinator.py coordinator --port 9301
        the real request schemas, EventGate, KeyDirectory, ServerConfigRegistry and InstanceRegistry; the routes
        around them are http.server's, as FastAPI is not among the peers' packages

Killed, a server has crashed: what it had not posted is lost.
"""
from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import engine_stubs
from fetch_engines import fetch
from lmcache_bus import DEFAULT, chunk
from peer_commands import serve, take_over_stdout

MP = "lmcache.v1.mp_coordinator."
REAL = ["lmcache.v1.mp_observability.event", "lmcache.v1.mp_observability.event_bus", "lmcache.v1.distributed.api",
        "lmcache.v1.distributed.internal_api", "lmcache.v1.distributed.error", "lmcache.logging", "lmcache._version",
        MP + "cache_events", MP + "api", MP + "schemas", MP + "registrar", MP + "discovery", MP + "blend_index",
        MP + "ingest.*", MP + "views", MP + "views.*", MP + "persistence.*", MP + "utils.*"]


def load(version: str) -> None:
    engine_stubs.activate(fetch("lmcache", version), ["lmcache"], REAL, ["torch", "cupy", "psutil", "numba"])
    logging.disable(logging.WARNING)


# -- a server --------------------------------------------------------------------------


class Server:
    def __init__(self, a):
        self.url, self.instance_id = a.url, a.instance_id
        self.registration = None
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.begin(a.incarnation)

    def begin(self, incarnation: int) -> None:
        """A life: its numbers count from 1."""
        from lmcache.v1.mp_coordinator.cache_events import CacheEventSubscriber, HttpCacheEventSink
        from lmcache.v1.mp_observability.event import EventType
        from lmcache.v1.mp_observability.event_bus import EventBus, EventBusConfig

        self.bus = EventBus(EventBusConfig(enabled=True))
        self.sink = HttpCacheEventSink(self.url)
        self.bus.register_subscriber(CacheEventSubscriber(self.sink, self.instance_id, incarnation, 0.0))
        self.taken = threading.Event()
        self.bus.subscribe(EventType.MP_REQUEST_START, lambda _e: self.taken.set())
        self.bus.start()

    def publish(self, name: str, **metadata) -> None:
        """Returns once the event was posted, or the post has failed."""
        from lmcache.v1.mp_observability.event import Event, EventType

        self.taken.clear()
        self.bus.publish(Event(EventType[name], metadata=metadata))
        # The bus hands events on one after the other, so this one comes behind the post.
        self.bus.publish(Event(EventType.MP_REQUEST_START))
        if not self.taken.wait(20):
            raise TimeoutError(f"{name} is still on its way")

    def keys(self, chunks, model="m1", salt="", ranks=(0,), groups=(0,)):
        from lmcache.v1.distributed.api import ObjectKey

        return [ObjectKey(chunk(c, salt), model, r, g, salt) for c in chunks for r in ranks for g in groups]

    def meta(self, keys, size):
        from lmcache.v1.distributed.api import L1BackendType
        from lmcache.v1.distributed.internal_api import L1ObjectMeta

        return [L1ObjectMeta(size, L1BackendType.DRAM)] * len(keys)

    def store_l1(self, chunks, size=100, tokens=None, **key) -> None:
        if tokens is not None:
            hashes = [chunk(c, key.get("salt", "")) for c in chunks]
            offsets = [sum(map(len, tokens[:at])) for at in range(len(tokens))]
            self.publish("MP_TOKENS", chunk_hashes=hashes, token_chunks=tokens, token_offsets=offsets,
                         parent_hashes=[None, *hashes[:-1]])
        keys = self.keys(chunks, **key)
        self.publish("L1_WRITE_FINISHED", l1_tag="l1-0", keys=keys, meta=self.meta(keys, size))

    def evict_l1(self, chunks, **key) -> None:
        keys = self.keys(chunks, **key)
        self.publish("L1_KEYS_EVICTED", l1_tag="l1-0", keys=keys, meta=self.meta(keys, 0))

    def store_l2(self, chunks, backend="fs", shared=False, size=100, **key) -> None:
        keys = self.keys(chunks, **key)
        self.publish("L2_KEYS_STORED", keys=keys, sizes=[size] * len(keys), backend=backend, shared=shared)

    def delete_l2(self, chunks, backend="fs", shared=False, **key) -> None:
        self.publish("L2_KEYS_DELETED", keys=self.keys(chunks, **key), backend=backend, shared=shared)

    def read_l1(self, chunks, **key) -> None:
        self.publish("L1_KEYS_ACCESSED", l1_tag="l1-0", keys=self.keys(chunks, **key))

    def capacity(self, modules) -> None:
        """Tier, backend, bytes and whether it is shared, each."""
        from lmcache.v1.distributed.api import CapacitySnapshot, ModuleMemoryCapacity, Tier

        snapshot = CapacitySnapshot(tuple(ModuleMemoryCapacity(Tier(t), b, n, s) for t, b, n, s in modules))
        self.publish("SM_CAPACITY_CHANGED", snapshot=snapshot)

    def register(self, heartbeat=0.2) -> None:
        """Until `leave`; a coordinator that does not answer is asked again, as long as that takes."""
        import httpx
        from lmcache.v1.mp_coordinator.registrar import keep_registered

        registered = threading.Event()

        async def run():
            async with httpx.AsyncClient(timeout=10.0) as client:
                await keep_registered(client, self.url, http_port=8000, instance_id=self.instance_id,
                                      advertise_ip="127.0.0.1", heartbeat_interval=heartbeat,
                                      on_registered=registered.set)

        self.registration = asyncio.run_coroutine_threadsafe(run(), self.loop)
        if not registered.wait(20):
            raise TimeoutError("no coordinator has answered")

    def leave(self) -> None:
        self.registration.cancel()
        time.sleep(0.1)

    def lose(self, count: int) -> None:
        """Posts that find nobody: their numbers stay used."""
        url, self.sink._base_url = self.sink._base_url, "http://127.0.0.1:1"
        for at in range(count):
            self.store_l1([f"lost-{at}"])
        self.sink._base_url = url

    def restart(self, incarnation: int) -> None:
        self.bus.stop()
        self.begin(incarnation)

    def operations(self) -> dict:
        names = ["store_l1", "evict_l1", "store_l2", "delete_l2", "read_l1", "capacity", "register", "leave", "lose", "restart"]
        return {name: getattr(self, name) for name in names}


# -- a coordinator ---------------------------------------------------------------------


class Coordinator:
    def __init__(self):
        from lmcache.v1.mp_coordinator.ingest.event_broadcaster import CacheEventBroadcaster
        from lmcache.v1.mp_coordinator.ingest.event_gate import EventGate
        from lmcache.v1.mp_coordinator.persistence.quiesce import QuiesceLock
        from lmcache.v1.mp_coordinator.views.instance_registry import InstanceRegistry
        from lmcache.v1.mp_coordinator.views.key_directory import KeyDirectory
        from lmcache.v1.mp_coordinator.views.server_config import ServerConfigRegistry

        self.directory, self.config, self.registry = KeyDirectory(), ServerConfigRegistry(), InstanceRegistry()
        broadcaster = CacheEventBroadcaster()
        for consumer in (self.directory, self.config):
            broadcaster.register_consumer(consumer)
        self.gate = EventGate(broadcaster, QuiesceLock())
        self.delay = 0.0

    def answer(self, method: str, path: str, body: bytes):
        """Status and JSON, as the routes of http_apis/ have them."""
        from pydantic import ValidationError
        from lmcache.v1.mp_coordinator.schemas import CacheEventsRequest, RegisterRequest

        time.sleep(self.delay)
        try:
            if (method, path) == ("POST", "/events"):
                return 200, dataclasses.asdict(self.gate.ingest_batches(CacheEventsRequest.model_validate_json(body).batches))
            if (method, path) == ("POST", "/instances"):
                return 200, self.register(RegisterRequest.model_validate_json(body))
        except ValidationError as e:
            return 422, {"detail": json.loads(e.json(include_url=False, include_context=False))}
        if (method, path) == ("GET", "/healthz"):
            return 200, {"status": "healthy"}
        instance = re.fullmatch(r"/instances/([^/]+)(/heartbeat)?", path)
        if instance and (method, instance[2]) == ("PUT", "/heartbeat"):
            known = self.registry.update_heartbeat(instance[1], time.monotonic())
            return (200, {"instance_id": instance[1]}) if known else (404, {"error": f"unknown instance {instance[1]}; re-register"})
        if instance and (method, instance[2]) == ("DELETE", None):
            self.registry.deregister(instance[1])
            self.gate.drop_instance(instance[1])
            self.config.forget(instance[1])
            return 204, None
        return 404, {"detail": "Not Found"}

    def register(self, body):
        from lmcache.v1.mp_coordinator.views.instance_registry import MPInstance

        member = MPInstance(body.instance_id, body.ip, body.http_port, time.time(), time.monotonic(), dict(body.metadata))
        return {"instance_id": body.instance_id, "re_registered": self.registry.register(member)}

    def held(self):
        """Instance (empty: a pool), tier/backend, salt, model@hash, rank/group, of each placement."""
        from lmcache.v1.distributed.api import Tier

        _, page = self.directory.list_keys(Tier.ALL, limit=1_000_000)
        return sorted(["" if p.shared else p.instance_id, f"{p.tier.value}/{p.backend}", k.cache_salt,
                       f"{k.model_name}@{k.chunk_hash.hex()}", f"{k.kv_rank}/{k.object_group_id}", p.size_bytes]
                      for k, placements in page.items() for p in placements)

    def operations(self) -> dict:
        return {
            "held": self.held,
            "streams": lambda: {k: dataclasses.asdict(v) for k, v in self.gate.stats().items()},
            "members": lambda: sorted(m.instance_id for m in self.registry.all_instances()),
            "slow": lambda seconds: setattr(self, "delay", seconds),
        }


def listen(coordinator: Coordinator, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, value = coordinator.answer(self.command, self.path, body)
            data = b"" if value is None else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = do

        def log_message(self, *_a):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("mode", choices=("server", "coordinator"))
    ap.add_argument("--version", default=DEFAULT)
    ap.add_argument("--url", default="http://127.0.0.1:9300")
    ap.add_argument("--instance-id", default="mp-1")
    ap.add_argument("--incarnation", type=int, default=1000)
    ap.add_argument("--port", type=int, default=0)
    a = ap.parse_args()
    answers = take_over_stdout()
    load(a.version)
    if a.mode == "server":
        server = Server(a)
        serve(answers, {}, server.operations())
        server.bus.stop()
    else:
        coordinator = Coordinator()
        http = listen(coordinator, a.port)
        serve(answers, {"port": http.server_port}, coordinator.operations())
        http.shutdown()


if __name__ == "__main__":
    main()
