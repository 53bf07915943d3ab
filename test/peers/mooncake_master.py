#!/usr/bin/env python3
"""The real mooncake_master with KV events on, and a real client that works it.

    mooncake_master.py --port 17053 --batches 200 --seed 1
    mooncake_master.py --disk --tenants 2 --rate 50
    mooncake_master.py --serve                  the master alone, for mooncake_client.py
    mooncake_master.py --vectors out.jsonl      the scripted cases of the captures

Needs fetch_engines.py to have run (mooncake-master, mooncake-client and the
InfiniBand libraries), and pyzmq, msgpack.  Master's RPC port is PORT+1, its admin
port PORT+2; the transfer engine also takes a few random loopback ports.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from fetch_engines import fetch, library_path
from peer_commands import serve, take_over_stdout

MASTER, CLIENT = "0.3.14", "0.3.13.post1"
STOP = threading.Event()


def with_libraries() -> None:
    """Start over with the library path set: the client's extension needs it at load."""
    if os.environ.get("KVRELAY_MC_ENV"):
        return
    os.environ.update(KVRELAY_MC_ENV="1", GLOG_minloglevel="3", MC_LOG_LEVEL="ERROR",
                      LD_LIBRARY_PATH=library_path() + ":" + os.environ.get("LD_LIBRARY_PATH", ""))
    os.execv(sys.executable, [sys.executable, *sys.argv])


def end_with_parent() -> None:
    """Runs in the master before it starts: killed, this program takes it along."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Master:
    def __init__(self, port: int, *flags: str, events=True, log=None):
        self.port, self.rpc, self.admin = port, port + 1, port + 2
        binary = fetch("mooncake-master", MASTER) / "mooncake/mooncake_master"
        self.log = log or tempfile.NamedTemporaryFile("w+", prefix="mooncake-master-", suffix=".log")
        kv = ["-enable_kv_events=true", f"-kv_events_bind_endpoint=tcp://127.0.0.1:{port}"] if events else []
        if events and not any(f.startswith("-kv_events_backend_id") for f in flags):
            kv.append("-kv_events_backend_id=mooncake-1")
        self.proc = subprocess.Popen(
            [str(binary), "-rpc_address=127.0.0.1", f"-rpc_port={self.rpc}", "-metrics_host=127.0.0.1",
             f"-metrics_port={self.admin}", "-logtostderr", *kv, *flags],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=end_with_parent)
        for _ in range(100):
            time.sleep(0.1)
            if self.proc.poll() is not None:
                if log is None:
                    self.log.seek(0)
                raise SystemExit("mooncake_master ended: " + (self.log.read()[-600:] if log is None else ""))
            try:
                self.status()
                return
            except OSError:
                pass
        raise SystemExit("mooncake_master does not answer")

    def status(self) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/kv_events/status", timeout=2) as r:
            return json.load(r)

    def stop(self) -> None:
        self.proc.terminate()
        self.proc.wait()
        if self.log is not sys.stderr:
            self.log.close()


def client(master: Master, tenant="default", segment=64 << 20, **more):
    path = str(fetch("mooncake-client", CLIENT))
    if path not in sys.path:
        sys.path.insert(0, path)
    from mooncake.store import MooncakeDistributedStore

    store = MooncakeDistributedStore()
    rc = store.setup("127.0.0.1", "P2PHANDSHAKE", segment, 16 << 20, "tcp", "", f"127.0.0.1:{master.rpc}",
                     tenant_id=tenant, **more)
    if rc:
        raise SystemExit(f"client setup failed: {rc}")
    return store


def quota_file(folder: str, tenants) -> str:
    path = os.path.join(folder, "quota.yaml")
    with open(path, "w") as f:
        f.write("version: 1\ntenants:\n" + "".join(f"  - name: {t}\n    quota: 20000000\n" for t in tenants))
    return path


def offload_env(folder: str) -> None:
    """Small buckets and a quick heartbeat, so that disk copies come within seconds."""
    os.environ.update(MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT="4", MOONCAKE_OFFLOAD_BUCKET_SIZE_LIMIT_BYTES="262144",
                      MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS="1", MOONCAKE_OFFLOAD_FILE_STORAGE_PATH=folder)


# -- a seeded workload ---------------------------------------------------------


def work(a) -> None:
    folder = tempfile.mkdtemp(prefix="kvrelay-mc-")
    tenants = ["default"] if a.tenants <= 1 else [f"tenant-{i}" for i in range(a.tenants)]
    flags = ["-default_kv_lease_ttl=0", f"-kv_events_queue_capacity={a.queue_capacity}",
             f"-kv_events_backend_id={a.backend_id}", f"-kv_events_model_name={a.model_name}"] + a.flag
    if len(tenants) > 1:
        flags += ["-enable_multi_tenants=true", f"-tenant_quota_connector_uri={quota_file(folder, tenants)}"]
    more = {}
    if a.disk:
        offload_env(folder)
        flags.append("-enable_offload=true")
        more = dict(enable_ssd_offload=True, ssd_offload_path=folder)

    def start():
        master = Master(a.port, *flags)
        return master, {t: client(master, t, **more) for t in tenants}

    try:
        master, stores = start()
        print(json.dumps({"state": "ready", "port": master.port, "rpc": master.rpc, "admin": master.admin}), file=sys.stderr, flush=True)
        if a.wait_stdin:
            sys.stdin.readline()
        else:
            STOP.wait(a.start_delay)
        rng = random.Random(a.seed)
        live: list[tuple[str, str]] = []
        begun, done, n = time.monotonic(), 0, 0
        while not STOP.is_set() and (not a.batches or done < a.batches):
            if a.rate > 0:
                lag = begun + done / a.rate - time.monotonic()
                if lag > 0 and STOP.wait(lag):
                    break
            if a.restart_at and done == a.restart_at:
                for s in stores.values():
                    s.close()
                master.stop()
                master, stores = start()
                live.clear()
                print(json.dumps({"state": "restarted", "after": done}), file=sys.stderr, flush=True)
                STOP.wait(a.start_delay)
            for _ in range(a.events_per_batch):
                roll = rng.random()
                if live and roll < 0.02:
                    t = rng.choice(tenants)
                    stores[t].remove_all(True)
                    live = [x for x in live if x[0] != t]
                elif live and roll < 0.25:
                    t, key = live.pop(rng.randrange(len(live)))
                    stores[t].remove(key, True)
                elif live and roll < 0.32:
                    t, key = rng.choice(live)
                    stores[t].upsert(key, b"u" * rng.randrange(100, 2000))
                else:
                    t, n = rng.choice(tenants), n + 1
                    key = f"model@{rng.randrange(4)}@{n:06d}"
                    if stores[t].put(key, b"x" * rng.randrange(100, 2000)) == 0:
                        live.append((t, key))
            done += 1
        time.sleep(0.5)
        print(json.dumps({"state": "published", **master.status()}), file=sys.stderr, flush=True)
        if a.hold < 0:
            threading.Thread(target=lambda: (sys.stdin.read(), STOP.set()), daemon=True).start()
            STOP.wait()
        else:
            STOP.wait(a.hold)
        for s in stores.values():
            s.close()
        master.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve_master(a) -> None:
    """The master alone; `status` is its only command, and it ends with standard input."""
    answers = take_over_stdout()
    folder = tempfile.mkdtemp(prefix="kvrelay-mc-")
    flags = [f"-kv_events_queue_capacity={a.queue_capacity}", f"-kv_events_backend_id={a.backend_id}", *a.flag]
    if a.tenant_quotas:
        flags += ["-enable_multi_tenants=true",
                  f"-tenant_quota_connector_uri={quota_file(folder, a.tenant_quotas.split(','))}"]
    try:
        master = Master(a.port, *flags, log=sys.stderr)
        serve(answers, {"port": master.port, "rpc": master.rpc, "admin": master.admin}, {"status": master.status})
        master.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- the scripted cases ----------------------------------------------------------


class Cases:
    def __init__(self, path: str, port: int):
        from wirecap import Subscriber, VectorFile, decode_live

        self.Subscriber, self.decode = Subscriber, decode_live
        self.out = VectorFile(path, "mooncake", MASTER)
        self.port = port

    def open(self, *flags):
        self.master = Master(self.port, *flags)
        self.sub = self.Subscriber(f"tcp://127.0.0.1:{self.port}")
        self.sub.start()
        time.sleep(0.5)

    def close(self):
        self.sub.close()
        self.master.stop()
        self.port += 10

    def take(self, case: str, wait=0.5, only=None):
        time.sleep(wait)
        got, self.sub.messages[:] = list(self.sub.messages), []
        if only:
            got = only(got)
        for i, frames in enumerate(got):
            self.out.add(case if len(got) == 1 else f"{case}#{i + 1}", frames, self.decode(frames))
        if not got:
            self.out.add(case, [], {"kind": "nothing", "payload": None})

    def status(self, case: str):
        s = self.master.status()
        self.out.add(case, [json.dumps(s, separators=(",", ":")).encode()], {"kind": "http-status", "payload": s})

    def http(self, case: str, path: str):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.master.admin}{path}", timeout=3) as r:
                code, kind, body = r.status, r.headers.get("Content-Type"), r.read()
        except urllib.error.HTTPError as e:
            code, kind, body = e.code, e.headers.get("Content-Type"), e.read()
        text = body.decode()
        self.out.add(case, [body], {"kind": "http-answer", "path": path, "status": code, "content_type": kind,
                                    "payload": json.loads(text) if kind.startswith("application/json") else text})

    def run(self) -> int:
        folder = tempfile.mkdtemp(prefix="kvrelay-mc-")
        try:
            self._run(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self.out.write()

    def _run(self, folder):
        c = self
        c.open("-default_kv_lease_ttl=500")
        s = client(c.master)
        from mooncake.store import ReplicateConfig

        s.put("k1", b"x" * 100), c.take("put")
        s.put("k1", b"y" * 100), c.take("put/same-key-again")
        s.upsert("k1", b"z" * 100), c.take("upsert/existing")
        s.upsert("k2", b"z"), c.take("upsert/new")
        s.put_batch([f"b{i}" for i in range(6)], [b"q"] * 6), c.take("put_batch")
        conf = ReplicateConfig()
        conf.group_ids = ["g-7"]
        s.put("g1", b"1", conf), c.take("put/group")
        s.put("modèle/キー@0", b"1"), c.take("put/unicode-key")
        s.remove("b0"), c.take("remove")
        s.remove("b0"), c.take("remove/missing-key")
        s.batch_remove(["b1", "b2", "missing"]), c.take("batch_remove")
        s.get("b3")
        s.remove_all(), c.take("remove_all/one-object-leased")
        time.sleep(0.7)
        s.remove_all(True), c.take("remove_all/force")
        s.remove_all(True), c.take("remove_all/nothing-held")
        s.put_batch([f"r{i:02d}" for i in range(70)], [b"q"] * 70)
        time.sleep(0.5)
        c.sub.messages.clear()
        s.remove_by_regex("^r.*", True)
        c.take("remove_by_regex/70-keys")
        c.status("status")
        s.close()
        c.close()

        c.open("-kv_events_emit_legacy_compat=false", "-kv_events_block_size=16", "-kv_events_model_name=Qwen/Qwen3-8B",
               "-kv_events_lora_name=ad-7", "-kv_events_additional_salt=salt-1", "-kv_events_dp_rank=3",
               "-kv_events_tenant_id=ignored", "-kv_events_backend_id=backend-2")
        s = client(c.master)
        s.put("a", b"1"), c.take("no-legacy/configured/stored")
        s.remove("a"), c.take("no-legacy/configured/removed")
        s.put("b", b"1")
        time.sleep(0.3)
        c.sub.messages.clear()
        s.remove_all(True), c.take("no-legacy/configured/cleared")
        s.close()
        c.close()

        c.open("-kv_events_emit_object_key=false")
        s = client(c.master)
        s.put("a", b"1"), s.put("b", b"1"), s.remove("a"), s.remove_all(True), c.take("no-object-key")
        c.status("no-object-key/status")
        s.close()
        c.close()

        c.open("-enable_multi_tenants=true", f"-tenant_quota_connector_uri={quota_file(folder, ['t1', 't2'])}")
        s1, s2 = client(c.master, "t1"), client(c.master, "t2")
        s1.put("same", b"1"), s2.put("same", b"2"), c.take("tenants/same-key-in-both")
        s1.remove_all(True), c.take("tenants/remove_all-of-one")
        c.http("tenants/http/get_all_keys", "/get_all_keys")
        s1.close(), s2.close()
        c.close()

        c.open("-kv_events_queue_capacity=2")
        s = client(c.master)
        s.put_batch([f"o{i}" for i in range(800)], [b"q"] * 800)
        c.take("overflow", 1.0, only=lambda got: got[:3] + got[-1:])
        c.status("overflow/status")
        s.close()
        c.close()

        os.makedirs(os.path.join(folder, "ssd"))
        offload_env(os.path.join(folder, "ssd"))
        c.open("-enable_offload=true", "-default_kv_lease_ttl=0")
        s = client(c.master, enable_ssd_offload=True, ssd_offload_path=os.path.join(folder, "ssd"))
        s.put_batch([f"d{i}" for i in range(4)], [b"x" * 65536] * 4)
        c.take("disk/stored-in-memory-then-on-disk", 6.0)
        c.http("http/get_all_keys", "/get_all_keys")
        c.http("http/batch_query_keys", "/batch_query_keys?keys=d0,missing")
        c.http("http/batch_query_keys/no-keys", "/batch_query_keys")
        c.http("http/query_key", "/query_key?key=d0")
        c.http("http/query_key/missing", "/query_key?key=missing")
        s.remove("d0", True), c.take("disk/remove-both-media")
        s.upsert("d1", b"new"), c.take("disk/upsert-both-media")
        s.close()
        c.close()

        c.open("-default_kv_lease_ttl=0")
        s = client(c.master)
        for i in range(1200):
            s.put(f"e{i}", b"x" * 65536)
        time.sleep(2)
        c.sub.messages.clear()
        gone = sum(1 for i in range(1200) if s.is_exist(f"e{i}") != 1)
        self.out.add("eviction/whole-objects", [], {"kind": "nothing", "payload": None, "objects_gone": gone,
                     "status": c.master.status(), "note": "evicted objects were not announced"})
        s.close()
        time.sleep(1)
        c.take("client-closed/its-objects-gone")
        c.close()

        c.open()
        s = client(c.master)
        s.put("first-after-restart", b"1"), c.take("restart/first-message")
        s.close()
        c.close()


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--port", type=int, default=17053)
    ap.add_argument("--batches", type=int, default=50, help="0: until stopped")
    ap.add_argument("--rate", type=float, default=0.0)
    ap.add_argument("--events-per-batch", type=int, default=3, help="store operations a batch")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tenants", type=int, default=1)
    ap.add_argument("--disk", action="store_true", help="offload to a temporary folder: events of medium disk")
    ap.add_argument("--backend-id", default="mooncake-1")
    ap.add_argument("--model-name", default="")
    ap.add_argument("--queue-capacity", type=int, default=65536)
    ap.add_argument("--flag", action="append", default=[], help="one more master flag, e.g. --flag=-kv_events_emit_legacy_compat=false")
    ap.add_argument("--restart-at", type=int, default=0)
    ap.add_argument("--start-delay", type=float, default=1.0)
    ap.add_argument("--wait-stdin", action="store_true")
    ap.add_argument("--hold", type=float, default=0.5, help="-1: until standard input ends or SIGTERM")
    ap.add_argument("--serve", action="store_true", help="no client: only the master, until standard input ends")
    ap.add_argument("--tenant-quotas", help="with --serve: names of tenants, split by commas; turns tenants on")
    ap.add_argument("--vectors", help="write the scripted cases here and end")
    a = ap.parse_args()
    with_libraries()
    if a.serve:
        serve_master(a)
        return
    signal.signal(signal.SIGTERM, lambda *_: STOP.set())
    signal.signal(signal.SIGINT, lambda *_: STOP.set())
    if a.vectors:
        print(Cases(a.vectors, a.port).run(), "lines")
    else:
        work(a)


if __name__ == "__main__":
    main()
