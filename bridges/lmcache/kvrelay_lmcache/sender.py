"""The thread that puts events on the wire, and answers who asks for what it missed.

Numbers count from 0, one a message, and start over with the process. The sockets are those of the engines that kvrelay reads:
PUB frames are topic (empty), number (8 bytes, big-endian), payload. The replay ROUTER takes an empty frame and a number, and sends every message
it has kept from there on, then an end mark.
"""
from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import zmq

from kvrelay_lmcache.encoding import Encoder, Entry
from kvrelay_lmcache.settings import Settings

logger = logging.getLogger("kvrelay_lmcache")

END_OF_REPLAY = b"\xff" * 8
#: How long the sender sleeps where nothing waits: it is not woken, so that an event costs its publisher one append.
IDLE_MS = 20
STOP_SECONDS = 5.0
#: What is unsent when the process ends is given up after this.
LINGER_MS = 500


class Sender:
    """`offer` is for one thread, that of the bus; all sockets belong to the sender's own."""

    def __init__(self, settings: Settings, status: Callable[[], dict[str, Any]]) -> None:
        """Binds; raises zmq.ZMQError where that fails. `status` is asked for each message."""
        self.dropped = 0
        self.unencodable = 0
        self._settings = settings
        self._status = status
        self._queue: collections.deque[Entry] = collections.deque()
        self._kept: collections.deque[tuple[int, bytes]] = collections.deque()
        self._kept_bytes = 0
        self._next = 0
        self._last_status: dict[str, Any] = {}
        self._encoder = Encoder()
        self._is_stopping = threading.Event()
        self._context = zmq.Context()
        self._pub = self._bound(zmq.PUB, settings.endpoint, settings.send_hwm)
        # A slow reader must be able to get all that is kept: a ROUTER drops silently above its mark.
        mark = 2 * (settings.buffer_messages + 1)
        replay = settings.replay_endpoint
        self._replay = self._bound(zmq.ROUTER, replay, mark) if replay else None
        self._thread = threading.Thread(target=self._run, daemon=True, name="kvrelay_lmcache")

    def start(self) -> None:
        self._thread.start()

    def offer(self, entry: Entry) -> None:
        """Never waits: with a full queue the event is dropped and counted."""
        if len(self._queue) >= self._settings.queue_events:
            self.dropped += 1
            return
        self._queue.append(entry)

    def stop(self) -> None:
        """Sends what waits, as far as it goes within some seconds."""
        self._is_stopping.set()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def _bound(self, kind: int, endpoint: str, mark: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.SNDHWM, mark)
        socket.setsockopt(zmq.LINGER, LINGER_MS)
        try:
            socket.bind(endpoint)
        except zmq.ZMQError:
            self._context.destroy(linger=0)
            raise
        return socket

    def _run(self) -> None:
        try:
            while not (self._is_stopping.is_set() and not self._queue):
                if not self._send_batch():
                    self._wait()
                self._answer()
        except Exception:
            # LMCache goes on without its bridge; the full queue then counts what is lost.
            logger.exception("the bridge to kvrelay has failed and sends nothing any more")
        finally:
            self._context.destroy(linger=LINGER_MS)

    def _send_batch(self) -> bool:
        """False where there was nothing to say."""
        queue, settings = self._queue, self._settings
        events: list[bytes] = []
        while queue and len(events) < settings.batch_events:
            encoded = self._encoder.event(queue.popleft())
            if encoded is None or len(encoded) > settings.max_event_bytes:
                self.unencodable += 1
            else:
                events.append(encoded)
                # A large event travels alone, so that a message is not a multiple of the limit.
                if len(encoded) > settings.max_event_bytes // settings.batch_events:
                    break
        status = {**self._status(), "dropped": self.dropped, "unencodable": self.unencodable}
        if not events and status == self._last_status:
            return False
        self._last_status = status
        self._send(self._encoder.message(time.time(), events, status))
        return True

    def _send(self, payload: bytes) -> None:
        number = self._next
        self._next += 1
        # A PUB never waits: it leaves out the subscribers that are above their mark.
        self._pub.send_multipart((b"", number.to_bytes(8, "big"), payload))
        if self._replay is None:
            return
        self._kept.append((number, payload))
        self._kept_bytes += len(payload)
        while len(self._kept) > self._settings.buffer_messages or self._kept_bytes > self._settings.buffer_bytes:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def _wait(self) -> None:
        if self._replay is None:
            self._is_stopping.wait(IDLE_MS / 1000)
        else:
            self._replay.poll(IDLE_MS)

    def _answer(self) -> None:
        """At most one request, so that events go out between two."""
        if self._replay is None:
            return
        try:
            request = self._replay.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        if len(request) != 3:
            return
        client, start = request[0], int.from_bytes(request[2], "big")
        for number, payload in self._kept:
            if number >= start:
                self._replay.send_multipart((client, b"", b"", number.to_bytes(8, "big"), payload))
        self._replay.send_multipart((client, b"", b"", END_OF_REPLAY, b""))
