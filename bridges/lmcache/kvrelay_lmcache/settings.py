"""Settings of the bridge, from the environment: LMCache's own arguments stay as they are."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "KVRELAY_BRIDGE_"


class SettingsError(ValueError):
    """A variable has a value that cannot be used; the message is one line: variable, value, what is allowed."""


@dataclass(frozen=True)
class Settings:
    """Endpoints are bound. An empty replay endpoint: nothing is kept and nobody can ask."""

    endpoint: str = "tcp://127.0.0.1:5571"
    replay_endpoint: str = "tcp://127.0.0.1:5572"
    #: Events that wait for the sender; above it new ones are dropped and counted.
    queue_events: int = 20_000
    #: Events of one message.
    batch_events: int = 64
    #: An event that takes more is dropped and counted.
    max_event_bytes: int = 4 << 20
    #: What is kept for replay, whichever is hit first; the oldest goes.
    buffer_messages: int = 10_000
    buffer_bytes: int = 64 << 20
    #: Unsent messages a subscriber may have, in the memory of LMCache; above it its next ones are lost, which it sees by
    #: their numbers and asks for again.
    send_hwm: int = 4_000
    #: Event types (`trace.call`) that are not subscribed to.
    skip: frozenset[str] = frozenset()


#: Twice as much still fits what a socket takes as its mark.
MAX_INTEGER = 1_000_000_000
#: Of a value that is refused.
MAX_SHOWN = 100

INTEGERS = ("queue_events", "batch_events", "max_event_bytes", "buffer_messages", "buffer_bytes", "send_hwm")


def settings_from(environment: Mapping[str, str]) -> Settings:
    """Raises SettingsError, also for a variable with the prefix that is no setting."""
    values: dict[str, object] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable[len(PREFIX):].lower()
        if name in INTEGERS:
            values[name] = positive(variable, text)
        elif name == "skip":
            values[name] = frozenset(part.strip() for part in text.split(",") if part.strip())
        elif name == "replay_endpoint" and text == "":
            values[name] = ""
        elif name in ("endpoint", "replay_endpoint"):
            values[name] = endpoint(variable, text)
        else:
            raise SettingsError(f"{variable}={text}: no setting of the bridge; check the spelling")
    return Settings(**values)  # type: ignore[arg-type]


def positive(variable: str, text: str) -> int:
    # Digits are counted first: Python refuses to read very many of them.
    is_whole = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INTEGER))
    if not (is_whole and 0 < int(text) <= MAX_INTEGER):
        raise SettingsError(f"{variable}={text[:MAX_SHOWN]}: must be a whole number from 1 to {MAX_INTEGER}")
    return int(text)


def endpoint(variable: str, text: str) -> str:
    if not text.startswith(("tcp://", "ipc://")):
        raise SettingsError(f"{variable}={text}: must be an address to bind, such as tcp://127.0.0.1:5571")
    return text
