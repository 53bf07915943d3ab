"""The other end of the bridge, with sockets of its own."""
from __future__ import annotations

import socket
import time
from typing import Any

import msgspec
import zmq

from kvrelay_lmcache.sender import Sender

TIMEOUT_MS = 20_000


def free_endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


class Message:
    def __init__(self, number: int, payload: bytes) -> None:
        self.number = number
        self.payload = payload
        self.sent_at, self.events, self.status = msgspec.msgpack.decode(payload)


PROBE = "test.probe"


class Receiver:
    """Has joined once a probe has come through: until then what is published may pass a subscriber by."""

    def __init__(self, sender: Sender, endpoint: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.connect(endpoint)
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not self.socket.poll(50):
            assert time.monotonic() < deadline, "never joined"
            sender.offer((PROBE, 1.0, "", {}))

    def read(self) -> Message:
        assert self.socket.poll(TIMEOUT_MS), "no message"
        topic, number, payload = self.socket.recv_multipart()
        assert topic == b""
        return Message(int.from_bytes(number, "big"), payload)

    def events(self, count: int) -> list[list[Any]]:
        """Exactly the next `count` events, whatever the messages they come in."""
        events: list[list[Any]] = []
        while len(events) < count:
            events += [event for event in self.read().events if event[0] != PROBE]
        assert len(events) == count
        return events

    def close(self) -> None:
        self.context.destroy(linger=0)


class Asker:
    """Asks for a replay; `request` may be any frames."""

    def __init__(self, endpoint: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.connect(endpoint)

    def ask(self, *request: bytes) -> None:
        self.socket.send_multipart(request)

    def answer(self) -> list[Message]:
        messages: list[Message] = []
        while True:
            assert self.socket.poll(TIMEOUT_MS), "no end of the answer"
            empty, topic, number, payload = self.socket.recv_multipart()
            assert (empty, topic) == (b"", b"")
            if number == b"\xff" * 8:
                assert payload == b""
                return messages
            messages.append(Message(int.from_bytes(number, "big"), payload))

    def close(self) -> None:
        self.context.destroy(linger=0)
