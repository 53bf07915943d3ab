"""The functions that set up event sources, by worker, and the releases in which they are known to be all there are.

A release is added after a look at every `KvEventPublisher(` in its wheel; the digest then tells that a worker's file is still
the released one.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RELEASES = ("1.6.0", "1.6.1")


@dataclass(frozen=True)
class Replacement:
    """One function of a released worker, and what stands in its place."""

    module: str
    """Dotted name of the module that defines it."""
    qualname: str
    """`function`, or `Class.method`."""
    sha256: str
    """Of its source, lines joined by line feeds, decorators included."""
    by: Callable[..., Any]


def _no_publishers(*_args: object, **_kwargs: object) -> None:
    return None


def _no_publisher_list(*_args: object, **_kwargs: object) -> list[object]:
    return []


async def _no_owner(*_args: object, **_kwargs: object) -> None:
    return None


async def _no_gateway(*_args: object, **_kwargs: object) -> None:
    # Its children are started as stock workers, each with a publisher and a worker id of its own.
    raise SystemExit(
        "kvrelay_dynamo: SGLang's gateway mode is not possible beside kvrelay; start one worker without it"
    )


WORKERS: dict[str, tuple[Replacement, ...]] = {
    "vllm": (
        Replacement(
            "dynamo.vllm.main",
            "setup_kv_event_publisher",
            "f50c237ce4cd5dc84295182955003971f07a9819123454667acacf6e904cb1c2",
            _no_publishers,
        ),
        # What an opted-in worker sets up instead: a source too.
        Replacement(
            "dynamo.vllm.main",
            "setup_kv_state_attachment_owner",
            "4da0517967fff7e8e70ba95e002c64931d8eedbdd392199c7eb499843e4e07a1",
            _no_owner,
        ),
    ),
    "sglang": (
        Replacement(
            "dynamo.sglang.publisher",
            "DynamoSglangPublisher.init_kv_event_publish",
            "de6ca2f0195393407ebf42c0d1cd60e34a75a767af844bd573f2f3aeccd5b3e7",
            _no_publisher_list,
        ),
        Replacement(
            "dynamo.sglang.gateway",
            "serve_via_gateway_children",
            "2a198373cc3e2f51ff48127ae2de71ace5c1e047c253649b7a006906f95f2676",
            _no_gateway,
        ),
    ),
}
