#!/usr/bin/env python3
"""The KV event stream of a real LMCache MP server, without a GPU: its caches are what it is told.

    lmcache_server.py --port 17071 [--log-size 32768] [--queue-size 10000]

Commands as in peer_commands.py. Hashes are hex; `tokens` and `parents` stand beside `hashes`, one a chunk.
"""
from __future__ import annotations

import argparse
import threading

from lmcache_bus import DEFAULT, StreamServer, drained
from peer_commands import serve, take_over_stdout


def with_pings(server: StreamServer, seen: list) -> StreamServer:
    """The server's request queue with a handler of `ping` as the MP server's own: it only touches the instance."""
    from lmcache.v1.multiprocess.request_handler import request_handler
    from lmcache.v1.multiprocess.transport.zmq_impl.server import add_handler_helper, get_zmq_handler_specs

    class Pings:
        @request_handler()
        def ping(self, instance_id: int | None) -> bool:
            seen.append(instance_id)
            server.module.touch_instance(instance_id)
            return True

    for spec in get_zmq_handler_specs(Pings()):
        add_handler_helper(server.server, spec.operation, spec.handler, spec.handler_type)
    return server


class Server:
    def __init__(self, a):
        self.a = a
        self.pinged: list = []
        self.server = self.start(a.log_size)

    def start(self, log_size: int) -> StreamServer:
        return with_pings(StreamServer(self.a.version, self.a.port, log_size, self.a.queue_size), self.pinged)

    def store(self, hashes, tokens, parents, model="m", ranks=(0,), bind=True, salt="") -> int:
        self.server.store([bytes.fromhex(h) for h in hashes], tokens,
                          [None if p is None else bytes.fromhex(p) for p in parents], model, ranks, bind, salt=salt)
        return self.settle()

    def evict(self, hashes, model="m", ranks=(0,)) -> int:
        self.server.evict([bytes.fromhex(h) for h in hashes], model, ranks)
        return self.settle()

    def overflow(self, evicted, model="m") -> int:
        """Fills the bus while nobody drains it, so that these evictions are not recorded."""
        gate = threading.Event()
        bus = self.server.bus
        bus.subscribe(self.server.event.EventType.MP_REQUEST_START, lambda _event: gate.wait(10))
        self.server.publish("MP_REQUEST_START")
        while bus.queue_depth():
            threading.Event().wait(0.01)
        for _ in range(self.a.queue_size + 1):
            self.server.publish("MP_REQUEST_END")
        self.server.evict([bytes.fromhex(h) for h in evicted], model)
        gate.set()
        return self.settle()

    def restart(self, log_size=None) -> int:
        self.server.close()
        self.server = self.start(self.a.log_size if log_size is None else log_size)
        return self.settle()

    def reap(self, silent_seconds) -> int:
        """Ends the subscriptions of instances that have not pinged for so long."""
        self.server.module.reap_stale_instances(silent_seconds, 0)
        return self.settle()

    def pings(self) -> list:
        return self.pinged

    def settle(self) -> int:
        drained(self.server.bus)
        return self.status()["next_seq"] - 1

    def status(self) -> dict:
        return self.server.module.report_status()["kv_events"]


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--version", default=DEFAULT)
    ap.add_argument("--port", type=int, default=17071)
    ap.add_argument("--log-size", type=int, default=32_768)
    ap.add_argument("--queue-size", type=int, default=10_000)
    a = ap.parse_args()
    answers = take_over_stdout()
    server = Server(a)
    names = ("store", "evict", "overflow", "restart", "reap", "pings", "status")
    serve(answers, {"port": a.port}, {name: getattr(server, name) for name in names})
    server.server.close()


if __name__ == "__main__":
    main()
