"""Starts LMCache's own command with the bridge on its bus.

LMCache has no way to name a subscriber from outside. Every start of its server makes the bus by `init_event_bus`; what that
returns gets the bridge as its first subscriber, and everything else stays as it is.
"""
from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Callable, Sequence
from typing import Any

import zmq

from kvrelay_lmcache.settings import Settings

BUS_MODULE = "lmcache.v1.mp_observability.event_bus"
COMMAND_MODULE = "lmcache.cli.main"


class RefusedError(Exception):
    """The bridge cannot be started; the message is one line with the remedy."""


def run(argv: Sequence[str], settings: Settings) -> None:
    """Runs `lmcache argv...` in this process; returns or raises as that does."""
    try:
        bus_module = importlib.import_module(BUS_MODULE)
    except ModuleNotFoundError as error:
        raise RefusedError(f"LMCache is not here ({error.name}); start this with the Python of the LMCache server") from None
    if not hasattr(bus_module, "init_event_bus"):
        raise RefusedError(f"{BUS_MODULE} has no init_event_bus; take LMCache 0.5.1 to 0.5.6, or a newer kvrelay-lmcache")
    setattr(bus_module, "init_event_bus", bridged(bus_module.init_event_bus, settings))
    sys.argv[:] = ["lmcache", *argv]
    runpy.run_module(COMMAND_MODULE, run_name="__main__", alter_sys=False)


def bridged(init_event_bus: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
    """The same function, with the bridge on each bus that is enabled."""

    def init_with_bridge(*args: Any, **options: Any) -> Any:
        # Imports LMCache, so only once LMCache is being started.
        from kvrelay_lmcache.subscriber import attach

        bus = init_event_bus(*args, **options)
        config = args[0] if args else options.get("config")
        if config is not None and not config.enabled:
            say("the event bus is disabled: nothing to forward")
            return bus
        try:
            attach(bus, settings)
        except zmq.ZMQError as error:
            raise RefusedError(f"cannot bind {settings.endpoint} or {settings.replay_endpoint}: {error}") from None
        say(f"events on {settings.endpoint}, replay on {settings.replay_endpoint or 'nothing'}")
        return bus

    return init_with_bridge


def say(line: str) -> None:
    print(f"kvrelay_lmcache: {line}", file=sys.stderr, flush=True)
