#!/usr/bin/env python3
"""A stand-in for Mooncake master's KV event publisher, for machines without the binary.

It follows the subscriber guide rule by rule, and its frames were compared with what the
real 0.3.14 master sends (mooncake_master.py): the same keys in the same order, event ids
given at sending, one skipped sequence number for each dropped event.  `--flavor guide`
leaves out session_id, which the released master has and the guide does not name.

    mooncake_emulator.py --port 17053 --admin-port 17052 --batches 100
    mooncake_emulator.py --queue-capacity 8 --burst 50     overflow: drops, reserved numbers, a gap
    mooncake_emulator.py --restart-at 20                   the counter goes back to 1
    mooncake_emulator.py --commands                        does what standard input says: class Commanded
"""
from __future__ import annotations

import argparse
import collections
import json
import random
import signal
import sys
import threading
import time

import msgpack
import zmq

from mooncake_emulated_admin import Admin
from peer_commands import serve, take_over_stdout

MAX_EVENTS = 64
LEGACY = {"stored": "BlockStored", "removed": "BlockRemoved", "cleared": "AllBlocksCleared"}
STOP = threading.Event()


class Publisher:
    """One live publisher: bounded queue, drop-oldest, sequence numbers from 1."""

    def __init__(self, a, ctx):
        self.a = a
        self.sock = ctx.socket(zmq.PUB)
        self.sock.setsockopt(zmq.LINGER, 0)
        self._bind()
        self.queue: collections.deque = collections.deque()
        self.lock = threading.Condition()
        self.seq = 0
        self.event_id = 0
        self.reserved = 0  # dropped events whose numbers are skipped at the next send
        self.stats = dict(published_batches=0, published_events=0, dropped_events=0, skipped_keyless_events=0)
        self.paused = False
        self.running = True
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _bind(self, seconds=5.0) -> None:
        """A predecessor's port is free again only a moment after its socket was closed."""
        until = time.monotonic() + seconds
        while True:
            try:
                self.sock.bind(f"tcp://{self.a.host}:{self.a.port}")
                return
            except zmq.ZMQError as e:
                if e.errno != zmq.EADDRINUSE or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    # -- events --------------------------------------------------------------

    def envelope(self, event_type: str, tenant: str, medium) -> dict:
        a = self.a
        # event_id is filled in when the event is sent: a dropped event uses none
        e = {"event_id": 0, "timestamp": int(time.time() * 1000), "event_type": event_type}
        if a.legacy_compat:
            e["type"] = LEGACY[event_type]
        e.update(model_name=a.model_name or None, block_size=a.kv_block_size or None, additional_salt=a.salt or None,
                 lora_name=a.lora_name or None, tenant_id=tenant, backend_id=a.backend_id, medium=medium, dp_rank=a.dp_rank)
        return e

    def per_object(self, event_type, key, tenant, medium, group):
        if not self.a.emit_object_key:
            self.stats["skipped_keyless_events"] += 1
            return
        with self.lock:
            e = self.envelope(event_type, tenant, medium)
            e.update(group_id=group, object_key=key, seq_hashes=[])
            if self.a.legacy_compat:
                e["block_hashes"] = []
            if self.a.flavor == "0.3.14" and event_type == "stored":
                e["session_id"] = None
            e["base_block_idx"] = None
            if event_type == "stored":
                e.update(parent_hash=None, token_ids=None)
                if self.a.legacy_compat:
                    e["parent_block_hash"] = None
            self._put(e)

    def stored(self, key, tenant="default", medium="cpu", group=None):
        self.per_object("stored", key, tenant, medium, group)

    def removed(self, key, tenant="default", medium="cpu", group=None):
        self.per_object("removed", key, tenant, medium, group)

    def cleared(self, tenant="default"):
        with self.lock:
            self._put(self.envelope("cleared", tenant, None))

    # -- queue and sending -----------------------------------------------------

    def _put(self, e) -> None:
        cap = self.a.queue_capacity
        if cap and len(self.queue) >= cap:
            self.queue.popleft()
            self.stats["dropped_events"] += 1
            self.reserved += 1
        self.queue.append(e)
        self.lock.notify()

    def _loop(self) -> None:
        while self.running:
            with self.lock:
                while self.running and (self.paused or not self.queue):
                    self.lock.wait(0.1)
                events = [self.queue.popleft() for _ in range(min(MAX_EVENTS, len(self.queue)))]
                skip, self.reserved = self.reserved, 0
            if not events:
                continue
            self.seq += skip + 1
            for e in events:
                self.event_id += 1
                e["event_id"] = self.event_id
            payload = msgpack.packb([int(time.time() * 1000), events, self.a.dp_rank])
            self.sock.send_multipart([b"", self.seq.to_bytes(8, "big"), payload])
            self.stats["published_batches"] += 1
            self.stats["published_events"] += len(events)

    def drain(self, seconds=30.0) -> None:
        until = time.monotonic() + seconds
        while self.queue and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.05)

    def close(self) -> None:
        self.running = False
        self.thread.join()
        self.sock.close()


class Store:
    """Just enough of a store for a believable stream: keys, media, tenants."""

    def __init__(self, pub: Publisher, seed: int, tenants: int):
        self.pub, self.rng = pub, random.Random(seed)
        self.tenants = ["default"] if tenants <= 1 else [f"tenant-{i}" for i in range(tenants)]
        self.media: dict[tuple[str, str], set[str]] = {}
        self.n = 0

    def step(self) -> None:
        rng, pub = self.rng, self.pub
        roll = rng.random()
        if self.media and roll < 0.02:  # RemoveAll that empties one tenant
            tenant = rng.choice(sorted({t for t, _ in self.media}))
            for (t, key), media in list(self.media.items()):
                if t == tenant:
                    for medium in sorted(media):
                        pub.removed(key, t, medium)
                    del self.media[(t, key)]
            pub.cleared(tenant)
        elif self.media and roll < 0.30:  # one medium of one object goes
            (tenant, key), media = rng.choice(list(self.media.items()))
            medium = rng.choice(sorted(media))
            media.discard(medium)
            if not media:
                del self.media[(tenant, key)]
            pub.removed(key, tenant, medium)
        elif self.media and roll < 0.36:  # Upsert: removed for the old value, then stored
            (tenant, key), media = rng.choice(list(self.media.items()))
            for medium in sorted(media):
                pub.removed(key, tenant, medium)
            self.media[(tenant, key)] = {"cpu"}
            pub.stored(key, tenant, "cpu")
        elif self.media and roll < 0.42:  # the same object also on disk
            (tenant, key), media = rng.choice(list(self.media.items()))
            media.add("disk")
            pub.stored(key, tenant, "disk")
        else:
            tenant = rng.choice(self.tenants)
            self.n += 1
            key = f"model@{tenant}@{rng.randrange(4)}@{self.n:06d}"
            self.media[(tenant, key)] = {"cpu"}
            pub.stored(key, tenant, "cpu")


class Commanded:
    """The emulator on command (peer_commands.py): a store whose every event is asked for.

    `stored`, `removed`, `cleared` change it and send the event, with `silent` only the one. `lose` skips numbers as a full
    queue does, `restart` counts from 1 again, `send` sends any frames, `admin` lets the HTTP side fail.
    """

    def __init__(self, a, ctx):
        self.a, self.ctx = a, ctx
        self.pub = Publisher(a, ctx)
        self.media: dict[tuple[str, str], set[str]] = {}
        self.admin = Admin(a.host, a.admin_port, lambda: self.pub.stats, lambda: self.media)

    def operations(self) -> dict:
        return {name: getattr(self, name) for name in
                ("stored", "removed", "cleared", "lose", "restart", "send", "set_admin", "status", "held", "batch")}

    def stored(self, key, tenant="default", medium="cpu", group=None, silent=False):
        self.media.setdefault((tenant, key), set()).add(medium)
        return self._sent(None if silent else lambda: self.pub.stored(key, tenant, medium, group))

    def removed(self, key, tenant="default", medium="cpu", group=None, silent=False):
        media = self.media.get((tenant, key), set())
        media.discard(medium)
        if not media:
            self.media.pop((tenant, key), None)
        return self._sent(None if silent else lambda: self.pub.removed(key, tenant, medium, group))

    def cleared(self, tenant="default", silent=False):
        self.media = {place: media for place, media in self.media.items() if place[0] != tenant}
        return self._sent(None if silent else lambda: self.pub.cleared(tenant))

    def lose(self, count=1):
        self.pub.reserved += count
        self.pub.stats["dropped_events"] += count
        return self.pub.seq

    def restart(self, keep=False):
        """A master keeps nothing over a restart; with `keep` it is only the publisher that starts anew."""
        self.pub.close()
        if not keep:
            self.media.clear()
        self.pub = Publisher(self.a, self.ctx)
        return self.pub.seq

    def send(self, frames_hex):
        self.pub.sock.send_multipart([bytes.fromhex(frame) for frame in frames_hex])

    def set_admin(self, failing):
        self.admin.failing = failing

    def status(self):
        return {**self.pub.stats, "last_seq": self.pub.seq, "requests": len(self.admin.requests)}

    def held(self):
        return [[tenant, key, sorted(media)] for (tenant, key), media in sorted(self.media.items())]

    def batch(self, commands):
        """Many at once: they share messages, as events that come together do."""
        self.pub.paused = True
        for command in commands:
            getattr(self, command.pop("op"))(**command)
        self.pub.paused = False
        return self._sent(lambda: None)

    def _sent(self, publish):
        """The last sequence number once the event has left; while sending is held, only that it is queued."""
        if publish is not None:
            publish()
            if not self.pub.paused:
                self.pub.drain()
        return self.pub.seq


def options() -> argparse.ArgumentParser:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=17053)
    ap.add_argument("--admin-port", type=int, default=0)
    ap.add_argument("--batches", type=int, default=50, help="steps of the simulated store; 0: until stopped")
    ap.add_argument("--rate", type=float, default=0.0, help="steps a second, 0: as fast as it goes")
    ap.add_argument("--events-per-batch", type=int, default=3, help="store operations a step")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tenants", type=int, default=1)
    ap.add_argument("--backend-id", default="mooncake-1")
    ap.add_argument("--model-name", default="")
    ap.add_argument("--kv-block-size", type=int, default=0)
    ap.add_argument("--salt", default="")
    ap.add_argument("--lora-name", default="")
    ap.add_argument("--dp-rank", type=int, default=0)
    ap.add_argument("--queue-capacity", type=int, default=65536)
    ap.add_argument("--no-legacy-compat", dest="legacy_compat", action="store_false")
    ap.add_argument("--no-object-key", dest="emit_object_key", action="store_false")
    ap.add_argument("--flavor", choices=("0.3.14", "guide"), default="0.3.14")
    ap.add_argument("--burst", type=int, default=0, help="after the steps, queue this many stores while sending is held")
    ap.add_argument("--restart-at", type=int, default=0)
    ap.add_argument("--start-delay", type=float, default=1.0)
    ap.add_argument("--commands", action="store_true", help="commands on standard input, nothing of its own")
    ap.add_argument("--wait-stdin", action="store_true")
    ap.add_argument("--hold", type=float, default=0.5, help="-1: until standard input ends or SIGTERM")
    return ap


def main() -> None:
    a = options().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    signal.signal(signal.SIGINT, lambda *_: STOP.set())
    ctx = zmq.Context.instance()
    if a.commands:
        answers = take_over_stdout()
        commanded = Commanded(a, ctx)
        serve(answers, {"port": a.port, "admin": commanded.admin.port}, commanded.operations())
        commanded.pub.close()
        return
    holder = [Publisher(a, ctx)]
    store = Store(holder[0], a.seed, a.tenants)
    if a.admin_port:
        Admin(a.host, a.admin_port, lambda: holder[0].stats, lambda: store.media)
    print(json.dumps({"state": "ready", "port": a.port}), file=sys.stderr, flush=True)
    if a.wait_stdin:
        sys.stdin.readline()
    else:
        STOP.wait(a.start_delay)
    begun, done = time.monotonic(), 0
    while not STOP.is_set() and (not a.batches or done < a.batches):
        if a.rate > 0:
            lag = begun + done / a.rate - time.monotonic()
            if lag > 0 and STOP.wait(lag):
                break
        if a.restart_at and done == a.restart_at:
            holder[0].drain()
            holder[0].close()
            time.sleep(0.3)
            holder[0] = Publisher(a, ctx)
            STOP.wait(a.start_delay)
            store = Store(holder[0], a.seed + 1, a.tenants)
        for _ in range(a.events_per_batch):
            store.step()
        holder[0].drain() if a.rate > 0 else None
        done += 1
    if a.burst:
        pub = holder[0]
        pub.drain()
        pub.paused = True
        for i in range(a.burst):
            pub.stored(f"burst@{i:06d}")
        pub.paused = False
    holder[0].drain()
    print(json.dumps({"state": "published", **holder[0].stats, "last_seq": holder[0].seq}), file=sys.stderr, flush=True)
    if a.hold < 0:
        threading.Thread(target=lambda: (sys.stdin.read(), STOP.set()), daemon=True).start()
        STOP.wait()
    else:
        STOP.wait(a.hold)
    holder[0].close()


if __name__ == "__main__":
    main()
