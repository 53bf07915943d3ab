#!/usr/bin/env python3
"""LMCache's real EventBus with its real metrics subscribers and kvrelay's bridge, on one seeded stream of events.

    lmcache_metrics.py --port 17091 --replay-port 17092 --events 3000      publishes, prints one JSON line with the metrics page
                                                                           of LMCache's own subscribers, stays up for replays
    lmcache_metrics.py --capture FILE --events 600                         the messages and the page, as a file (gzip)
    lmcache_metrics.py --lag --events 50000 [--no-bridge]                  how long the bus takes for the events, without metrics

Needs what lmcache_bus.py needs, and opentelemetry-exporter-prometheus. Time is played: it moves with the events, so that lives of hours
pass in a moment; what a GPU stream records has its own time.
"""
from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
import threading
import time
import types
from pathlib import Path

import lmcache_bus
from lmcache_bus import DEFAULT, drained

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bridges" / "lmcache"))

EPOCH = 1_764_480_000.0


class Clock:
    now = EPOCH

    def time(self) -> float:
        return self.now


def subscribers(bus):
    import lmcache.v1.mp_observability.subscribers.metrics as subs

    for name in sorted(n for n in dir(subs) if n.endswith("Subscriber")):
        cls = getattr(subs, name)
        more = {"sample_rate": 1.0} if "Lifecycle" in name else {}
        bus.register_subscriber(cls(bus) if name == "EventBusSelfMetricsSubscriber" else cls(**more))


def play(event, bus, clock, steps, flood=False) -> int:
    count = 0
    for name, session, metadata, wait, behind in steps:
        clock.now += wait
        made = event.Event(event.EventType[name], metadata=metadata, session_id=session)
        if behind is None:
            bus.publish(made)
        else:
            # As the bus takes what a GPU stream has recorded: with the time of the GPU.
            made.timestamp = clock.now - behind
            bus._queue.append(made)
            bus._wake.set()
        count += 1
        if not flood and bus.queue_depth() > 5000:
            drained(bus)
    drained(bus)
    return count


def page() -> str:
    import prometheus_client

    return prometheus_client.generate_latest().decode()


def bridge(bus, a):
    from kvrelay_lmcache.settings import Settings
    from kvrelay_lmcache.subscriber import attach

    replay = f"tcp://127.0.0.1:{a.replay_port}" if a.replay_port else ""
    return attach(bus, Settings(endpoint=f"tcp://127.0.0.1:{a.port}", replay_endpoint=replay, queue_events=a.queue_events))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--version", default=DEFAULT)
    ap.add_argument("--port", type=int, default=17091)
    ap.add_argument("--replay-port", type=int, default=17092)
    ap.add_argument("--events", type=int, default=3000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--salts", type=int, default=0, help="further salts")
    ap.add_argument("--queue-events", type=int, default=1_000_000, help="of the bridge")
    ap.add_argument("--flood", action="store_true", help="never wait for the bus: the bridge's queue may run over")
    ap.add_argument("--capture")
    ap.add_argument("--lag", action="store_true")
    ap.add_argument("--no-bridge", action="store_true")
    a = ap.parse_args()
    event, busmod = lmcache_bus.load(a.version)
    from lmcache_workload import Workload

    if a.lag:
        lag(a, event, busmod, Workload(event, a.seed))
        return
    import prometheus_client
    from opentelemetry import metrics as otel
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider

    for collector in list(prometheus_client.REGISTRY._collector_to_names):
        prometheus_client.REGISTRY.unregister(collector)
    otel.set_meter_provider(MeterProvider(metric_readers=[PrometheusMetricReader()]))
    clock = Clock()
    busmod.time = types.SimpleNamespace(time=clock.time, monotonic=time.monotonic)
    bus = busmod.EventBus(busmod.EventBusConfig(enabled=True, max_queue_size=100_000))
    subscribers(bus)
    sub = bridge(bus, a)
    bus.start()
    count = play(event, bus, clock, list(Workload(event, a.seed, a.salts).steps(a.events)), a.flood)
    while sub.sender._queue:
        time.sleep(0.01)
    # The last state leaves with the next turn of the sender.
    time.sleep(0.2)
    result = {"version": a.version, "events": count, "exceptions": bus.subscriber_exception_counts(), "dropped": sub.sender.dropped,
              "unencodable": sub.sender.unencodable, "messages": sub.sender._next, "page": page()}
    if a.capture:
        result["payloads"] = [base64.b64encode(payload).decode() for _, payload in sub.sender._kept]
        Path(a.capture).write_bytes(gzip.compress((json.dumps(result) + "\n").encode(), mtime=0))
    else:
        print(json.dumps(result), flush=True)
        sys.stdin.read()
    bus.stop()


def lag(a, event, busmod, workload) -> None:
    """Publishes as fast as it goes, with a look at the bus's own lag at each event."""
    bus = busmod.EventBus(busmod.EventBusConfig(enabled=True, max_queue_size=10_000_000))
    sub = None if a.no_bridge else bridge(bus, a)
    bus.subscribe(event.EventType.MP_REQUEST_START, lambda _e: None)
    steps = list(workload.steps(a.events))
    events = [event.Event(event.EventType[name], metadata=metadata, session_id=session) for name, session, metadata, _, _ in steps]
    worst = 0.0
    bus.start()
    begun = time.monotonic()
    for number, made in enumerate(events):
        bus.publish(made)
        if number % 100 == 0:
            worst = max(worst, bus.oldest_event_lag_seconds())
    published = time.monotonic() - begun
    while bus.queue_depth():
        time.sleep(0.0005)
    took = time.monotonic() - begun
    print(json.dumps({"events": len(events), "bridge": sub is not None, "publish_s": round(published, 4), "drained_s": round(took, 4), "worst_lag_s": round(worst, 4),
                      "dropped": sub.sender.dropped if sub else 0}), flush=True)
    threading.Thread(target=bus.stop, daemon=True).start()
    time.sleep(0.2)


if __name__ == "__main__":
    main()
