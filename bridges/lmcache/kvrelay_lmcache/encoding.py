"""Events as MessagePack.

A message is an array: when it was sent (float seconds), the events, a map with the state of bus and bridge. An event is an array:
type, timestamp, session id, metadata. Data classes become maps, enumerations their values.
"""
from __future__ import annotations

import numbers
import struct
from collections.abc import Sequence
from typing import Any

import msgspec

#: Type, timestamp, session id, metadata.
Entry = tuple[str, float, str, dict[str, Any]]

TRACE_CALL = "trace.call"
#: A text argument of a traced call is cut to so many characters.
TRACE_TEXT = 200


class Encoder:
    """Not for several threads at once."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=plain)

    def event(self, entry: Entry) -> bytes | None:
        """None where it cannot be put on the wire."""
        try:
            if entry[0] == TRACE_CALL:
                entry = (*entry[:3], without_objects(entry[3]))
            return self._encoder.encode(entry)
        except Exception:
            # Whatever is in an event, its publisher may still be changing it: that must not end the sender.
            return None

    def message(self, sent_at: float, events: Sequence[bytes], status: dict[str, Any]) -> bytes:
        head = b"\x93\xcb" + struct.pack(">d", sent_at) + b"\xdd" + struct.pack(">I", len(events))
        return b"".join((head, *events, self._encoder.encode(status)))


def plain(value: Any) -> Any:
    """What msgspec does not know: numbers and enumerations of native modules, plain records; of anything else the name of its type.

    A tensor says that it can be a number too, but asking it would wait for its GPU.
    """
    if isinstance(value, numbers.Integral) or hasattr(type(value), "__members__"):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if type(value).__name__ == "SimpleNamespace":
        return vars(value)
    return f"<{type(value).__name__}>"


def without_objects(metadata: dict[str, Any]) -> dict[str, Any]:
    """A traced call's arguments may be whole tensors: only scalars go out, of the rest the type."""
    args = metadata.get("args")
    if not isinstance(args, dict):
        return metadata
    return {**metadata, "args": {str(name): scalar(value) for name, value in args.items()}}


def scalar(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TRACE_TEXT]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return f"<{type(value).__name__}>"
