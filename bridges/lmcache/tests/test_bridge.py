"""The bridge on LMCache's real bus."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import lmcache_bus
import msgspec
import numpy
import pytest
import zmq
from conftest import BUS, EVENT
from lmcache_workload import Workload
from receiver import PROBE, Asker, Message, Receiver, free_endpoint

from kvrelay_lmcache.encoding import Encoder
from kvrelay_lmcache.sender import Sender
from kvrelay_lmcache.settings import Settings
from kvrelay_lmcache.subscriber import attach


def settings(**changes: Any) -> Settings:
    return Settings(**{"endpoint": free_endpoint(), "replay_endpoint": free_endpoint(), **changes})


@pytest.fixture
def bus() -> Iterator[Any]:
    made = BUS.EventBus(BUS.EventBusConfig(enabled=True))
    yield made
    made.stop()


def published(bus: Any) -> list[tuple[str, str, dict[str, Any]]]:
    rows = older_samples() if "SM_READ_PREFETCHED" in EVENT.EventType.__members__ else lmcache_bus.samples(EVENT)
    for name, session, metadata in rows:
        bus.publish(EVENT.Event(EVENT.EventType[name], metadata=metadata, session_id=session))
    return rows


def older_samples() -> list[tuple[str, str, dict[str, Any]]]:
    steps = Workload(EVENT, 1).steps(900)
    return [(name, session, metadata) for name, session, metadata, _, _ in steps if name != "TRACE_CALL"]


def wire(value: Any) -> Any:
    """As a reader of MessagePack gets what LMCache holds."""
    return lmcache_bus.show(value)


def test_every_event_type_arrives_whole_and_in_order(bus: Any) -> None:
    one = settings()
    sender = attach(bus, one).sender
    bus.start()
    receiver = Receiver(sender, one.endpoint)
    begun = time.time()
    rows = published(bus)
    events = receiver.events(len(rows))
    receiver.close()
    assert [[kind, session] for kind, _, session, _ in events] == [[EVENT.EventType[n].value, s] for n, s, _ in rows]
    assert [wire(metadata) for *_, metadata in events] == [wire(metadata) for *_, metadata in rows]
    assert all(begun <= at <= time.time() for _, at, _, _ in events)
    assert {kind for kind, *_ in events} | {"trace.call"} == {kind.value for kind in EVENT.EventType}


def test_messages_count_from_0_and_a_replay_has_the_same_bytes(bus: Any) -> None:
    one = settings(batch_events=1)
    sender = attach(bus, one).sender
    bus.start()
    receiver, asker = Receiver(sender, one.endpoint), Asker(one.replay_endpoint)
    rows = published(bus)
    live: list[Message] = []
    while len(live) < len(rows):
        live += [message for message in [receiver.read()] if message.events and message.events[0][0] != PROBE]
    assert [message.number for message in live] == list(range(live[0].number, live[0].number + len(rows)))
    asker.ask(b"", (0).to_bytes(8, "big"))
    kept = asker.answer()
    assert [message.number for message in kept] == list(range(len(kept)))
    assert [m.payload for m in kept if m.number >= live[0].number][: len(live)] == [m.payload for m in live]
    asker.ask(b"", (len(kept) - 2).to_bytes(8, "big"))
    assert [message.number for message in asker.answer()][:2] == [len(kept) - 2, len(kept) - 1]
    asker.ask(b"", (10**6).to_bytes(8, "big"))
    assert asker.answer() == []
    receiver.close()
    asker.close()


def test_a_request_of_another_form_gets_no_answer_and_harms_nobody(bus: Any) -> None:
    one = settings()
    attach(bus, one)
    bus.start()
    asker = Asker(one.replay_endpoint)
    asker.ask(b"")
    asker.ask(b"", b"", b"\x00")
    asker.ask(b"", b"")
    assert isinstance(asker.answer(), list)
    assert asker.socket.poll(200) == 0
    asker.close()


def test_the_replay_buffer_is_bounded_by_messages_and_by_bytes() -> None:
    for bounds in ({"buffer_messages": 5}, {"buffer_bytes": 2000}):
        one = settings(batch_events=1, **bounds)
        sender = Sender(one, dict)
        for number in range(50):
            sender.offer(("mp.request.start", 1.0, f"r{number}", {"text": "x" * 300}))
        sender.start()
        asker = Asker(one.replay_endpoint)
        deadline = time.monotonic() + 20
        while sender._queue and time.monotonic() < deadline:
            time.sleep(0.01)
        asker.ask(b"", b"")
        kept = asker.answer()
        assert [message.number for message in kept] == list(range(50 - len(kept), 50)), bounds
        assert len(kept) == 5
        asker.close()
        sender.stop()


def test_a_slow_reader_gets_all_that_is_kept() -> None:
    one = settings(batch_events=1)
    sender = Sender(one, dict)
    for number in range(8000):
        sender.offer(("mp.request.start", 1.0, f"r{number}", {}))
    sender.start()
    asker = Asker(one.replay_endpoint)
    while sender._queue:
        time.sleep(0.01)
    asker.ask(b"", b"")
    time.sleep(1)
    assert [message.number for message in asker.answer()] == list(range(8000))
    asker.close()
    sender.stop()


def test_a_full_queue_drops_new_events_counts_them_and_never_waits() -> None:
    one = settings(queue_events=10)
    sender = Sender(one, dict)
    begun = time.monotonic()
    for number in range(1_010):
        sender.offer(("mp.request.start", 1.0, f"r{number}", {}))
    assert time.monotonic() - begun < 1
    assert sender.dropped == 1000
    sender.start()
    asker = Asker(one.replay_endpoint)
    messages: list[Message] = []
    while not messages:
        asker.ask(b"", b"")
        messages = asker.answer()
    assert [session for _, _, session, _ in messages[0].events] == [f"r{n}" for n in range(10)]
    assert messages[0].status["dropped"] == 1000
    asker.close()
    sender.stop()


class Broken:
    """As a native enumeration that is not ready."""

    __members__: dict[str, int] = {}

    def __int__(self) -> int:
        raise RuntimeError("not now")


class Tensor:
    def __index__(self) -> int:
        raise AssertionError("waited for the GPU")

    __float__ = __index__


class NativeEnum:
    """As pybind11 makes them."""

    __members__ = {"D2H": 1}

    def __int__(self) -> int:
        return 1


@pytest.mark.parametrize("value, sent", [
    (numpy.int64(2**40), 2**40), (numpy.float32(0.5), 0.5), (NativeEnum(), 1), (Tensor(), "<Tensor>"), ((1, "a"), [1, "a"]),
])
def test_values_of_native_modules_are_plain_on_the_wire(value: Any, sent: Any) -> None:
    encoded = Encoder().event(("mp.request.start", 1.0, "r", {"value": value}))
    assert encoded is not None
    assert msgspec.msgpack.decode(encoded)[3] == {"value": sent}


def test_an_event_that_cannot_be_sent_costs_itself(bus: Any) -> None:
    one = settings(max_event_bytes=1000)
    sender = attach(bus, one).sender
    bus.start()
    receiver = Receiver(sender, one.endpoint)
    for metadata in ({"keys": Broken()}, {"count": 2**70}, {"text": "x" * 2000}, {"fine": {1, 2}, "object": object()}):
        bus.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_START, metadata=metadata, session_id="r"))
    (event,) = receiver.events(1)
    assert event[3]["object"] == "<object>"
    bus.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_END, session_id="r"))
    message = receiver.read()
    while not message.events or message.events[0][0] == PROBE:
        message = receiver.read()
    assert message.status["unencodable"] == 3
    receiver.close()


def test_of_a_traced_call_only_scalars_go_out(bus: Any) -> None:
    one = settings()
    sender = attach(bus, one).sender
    bus.start()
    receiver = Receiver(sender, one.endpoint)
    args = {"n": 1, "text": "y" * 500, "tensor": bytearray(10), "tokens": [1, 2, 3], "none": None}
    bus.publish(EVENT.Event(EVENT.EventType.TRACE_CALL, metadata={"qualname": "A.b", "args": args, "t_mono": 1.5}))
    (event,) = receiver.events(1)
    assert event[3] == {"qualname": "A.b", "t_mono": 1.5,
                        "args": {"n": 1, "text": "y" * 200, "tensor": "<bytearray>", "tokens": "<list>", "none": None}}
    assert args["tokens"] == [1, 2, 3]
    receiver.close()


def test_skipped_types_are_not_subscribed_to(bus: Any) -> None:
    attach(bus, settings(skip=frozenset({"trace.call"})))
    assert not bus.has_subscribers(EVENT.EventType.TRACE_CALL)
    assert bus.has_subscribers(EVENT.EventType.MP_LOOKUP)


def test_the_state_tells_what_the_bus_has_dropped_and_whose_subscribers_failed(bus: Any) -> None:
    one = settings()
    gate = threading.Event()

    def failing(_event: Any) -> None:
        gate.wait(20)
        raise ValueError("as it happens")

    small = BUS.EventBus(BUS.EventBusConfig(enabled=True, max_queue_size=2))
    small.subscribe(EVENT.EventType.MP_REQUEST_START, failing)
    sender = attach(small, one).sender
    receiver = Receiver(sender, one.endpoint)
    for _ in range(5):
        small.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_START, session_id="r"))
    small.start()
    gate.set()
    statuses: list[dict[str, Any]] = []
    while not (statuses and statuses[-1]["bus_dropped"] == 3 and sum(statuses[-1]["exceptions"].values()) == 2):
        statuses.append(receiver.read().status)
    assert statuses[-1]["lmcache"] == lmcache_version()
    receiver.close()
    small.stop()


def lmcache_version() -> str:
    from lmcache._version import version

    return str(version)


def test_the_end_of_the_bus_sends_what_waits(bus: Any) -> None:
    one = settings(batch_events=10)
    sender = attach(bus, one).sender
    receiver = Receiver(sender, one.endpoint)
    bus.start()
    for number in range(500):
        bus.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_START, session_id=f"r{number}"))
    bus.stop()
    assert [session for _, _, session, _ in receiver.events(500)] == [f"r{n}" for n in range(500)]
    receiver.close()


def test_a_taken_address_is_an_error_at_once(bus: Any) -> None:
    context = zmq.Context()
    taken = context.socket(zmq.PUB)
    endpoint = free_endpoint()
    taken.bind(endpoint)
    with pytest.raises(zmq.ZMQError):
        attach(bus, settings(endpoint=endpoint))
    context.destroy(linger=0)
