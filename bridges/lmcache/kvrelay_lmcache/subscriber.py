"""The subscriber inside LMCache: hands every event of the bus to the sender."""
from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

from lmcache.v1.mp_observability.event import Event, EventType
from lmcache.v1.mp_observability.event_bus import EventBus, EventSubscriber

from kvrelay_lmcache.sender import Sender
from kvrelay_lmcache.settings import Settings

#: Drain lag is told in milliseconds: each change of the state is a message of its own on a quiet bus.
LAG_DIGITS = 3


class BridgeSubscriber(EventSubscriber):  # type: ignore[misc]
    """Runs on the drain thread of the bus, which it never holds up: one append an event."""

    def __init__(self, bus: EventBus, settings: Settings) -> None:
        """Binds the sockets; raises zmq.ZMQError where that fails."""
        self._bus = bus
        self._skip = settings.skip
        self._version = installed_version()
        self.sender = Sender(settings, self._status)
        self.sender.start()

    def get_subscriptions(self) -> dict[EventType, Callable[[Event], None]]:
        return {kind: self._take for kind in EventType if kind.value not in self._skip}

    def shutdown(self) -> None:
        """The bus calls it after its last event."""
        self.sender.stop()

    def _take(self, event: Event) -> None:
        self.sender.offer((event.event_type.value, event.timestamp, event.session_id, event.metadata))

    def _status(self) -> dict[str, Any]:
        bus = self._bus
        return {
            "lmcache": self._version,
            "bus_dropped": bus.dropped_events_count(),
            "queue_depth": bus.queue_depth(),
            "drain_lag_s": round(bus.oldest_event_lag_seconds(), LAG_DIGITS),
            "exceptions": bus.subscriber_exception_counts(),
        }


def installed_version() -> str | None:
    try:
        return importlib.metadata.version("lmcache")
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        from lmcache._version import __version__
    except ImportError:
        return None
    return str(__version__)


def attach(bus: EventBus, settings: Settings) -> BridgeSubscriber:
    """Registers the bridge with a bus, before or after its start."""
    subscriber = BridgeSubscriber(bus, settings)
    bus.register_subscriber(subscriber)
    return subscriber
