"""Starts a released worker as far as its event sources, without an engine, and prints what came of it as JSON.

    driver.py vllm|sglang [--stock] [--state-agent] [--gateway] [arguments of the worker]

Real are the released entry point, `main` and the modules that set sources up; every other module of Dynamo, the engine and the
runtime is a stand-in. With --stock the worker starts as it does without the launcher.
"""
from __future__ import annotations

import asyncio
import json
import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PROJECT = Path(__file__).resolve().parents[3]
sys.path[:0] = [os.environ["KVRELAY_AI_DYNAMO"], str(PROJECT / "test" / "peers")]

import engine_stubs  # noqa: E402

REAL = {
    "vllm": ["dynamo.vllm", "dynamo.vllm.__main__", "dynamo.vllm.main", "dynamo.vllm.worker_factory"],
    "sglang": ["dynamo.sglang", "dynamo.sglang.__main__", "dynamo.sglang.main", "dynamo.sglang.publisher",
               "dynamo.sglang.gateway"],
}
FAKE = ["vllm", "sglang", "uvloop", "huggingface_hub", "prometheus_client", "zmq", "msgspec", "torch", "PIL"]

RESULT: dict[str, Any] = {"publishers": 0, "owners": 0, "returned": None, "argv": None}


class Unset(SimpleNamespace):
    """A configuration in which all that is not given is off."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class CountedPublisher:
    def __init__(self, **_settings: object) -> None:
        RESULT["publishers"] += 1


async def count_owner(*_args: object) -> None:
    RESULT["owners"] += 1


async def nothing(*_args: object, **_kwargs: object) -> None:
    return None


def offset_port(endpoint: str, data_parallel_rank: int = 0) -> str:
    head, port = endpoint.rsplit(":", 1)
    return f"{head}:{int(port) + data_parallel_rank}"


def overrides(uses_state_agent: bool, uses_gateway: bool) -> dict[str, dict[str, object]]:
    events = Unset(enable_kv_cache_events=True, endpoint="tcp://*:5557")
    vllm = Unset(model="/", served_model_name="m", engine_args=Unset(enable_prefix_caching=True, kv_events_config=events),
                 embedding_worker_processes=0)
    server = Unset(kv_events_config='{"endpoint": "tcp://*:5557"}', tokenizer_worker_num=1)
    sglang = Unset(server_args=server, dynamo_args=Unset(use_kv_events=True))

    async def parse_vllm(argv: list[str]) -> Unset:
        RESULT["argv"] = argv
        return vllm

    async def parse_sglang(argv: list[str]) -> Unset:
        RESULT["argv"] = argv
        return sglang

    async def init_decode(*_args: object, **_kwargs: object) -> None:
        from dynamo.sglang import gateway, publisher
        if uses_gateway:
            await gateway.serve_via_gateway_children(Unset(), 2, asyncio.Event())
        worker = publisher.DynamoSglangPublisher.__new__(publisher.DynamoSglangPublisher)
        worker.__dict__.update(server_args=server, dynamo_args=sglang.dynamo_args, kv_publishers=[],
                               generate_endpoint=Unset(), kv_worker_id=None)
        RESULT["returned"] = len(worker.init_kv_event_publish())

    zmq_publisher = SimpleNamespace(offset_endpoint_port=offset_port)
    return {
        "huggingface_hub.utils": {"HFValidationError": ValueError},
        "uvloop": {"run": asyncio.run},
        "vllm.distributed.kv_events": {"ZmqEventPublisher": zmq_publisher},
        "sglang.srt.disaggregation.kv_events": {"ZmqEventPublisher": zmq_publisher},
        "dynamo.llm": {"KvEventPublisher": CountedPublisher},
        "dynamo.common.utils.runtime": {"create_runtime": lambda **_k: (Unset(), Unset())},
        "dynamo.vllm.args": {"parse_args_with_model_fetch": parse_vllm},
        "dynamo.vllm.snapshot": {"prepare_snapshot_engine": nothing},
        "dynamo.vllm.dp_topology": {"get_dp_range_for_worker": lambda _config: (0, 2)},
        "dynamo.vllm.state_agent": {"state_agent_settings": lambda _config: Unset() if uses_state_agent else None,
                                    "start_attachment_owner": count_owner},
        "dynamo.sglang.args": {"parse_args": parse_sglang},
        "dynamo.sglang.snapshot": {"prepare_snapshot_engine": nothing},
        "dynamo.sglang.capacity": {"local_dp_rank_bounds": lambda _args: (0, 2), "publishes_kv_events": lambda _args: True},
        "dynamo.sglang.init_llm": {"init_decode": init_decode},
    }


def stop_at_sources() -> None:
    """The released factory goes on to load the engine; here it sets its event sources up and ends."""
    from dynamo.vllm.worker_factory import WorkerFactory

    async def create(self: Any, _runtime: object, config: object, *_args: object, **_kwargs: object) -> None:
        vllm_config = Unset(model_config=Unset(model="/", hf_config=Unset()))
        sources = await self._setup_kv_routing(config, Unset(), vllm_config, consolidator_enabled=False,
                                               consolidator_port=None)
        RESULT["returned"] = None if sources is None else len(sources)

    WorkerFactory.create = create


def main() -> None:
    worker, *argv = sys.argv[1:]
    options = {name: name in argv for name in ("--stock", "--state-agent", "--gateway")}
    argv = [word for word in argv if word not in options]
    engine_stubs.activate(os.environ["KVRELAY_AI_DYNAMO"], ["dynamo"], REAL[worker], FAKE,
                          overrides(options["--state-agent"], options["--gateway"]))
    if worker == "vllm":
        stop_at_sources()
    if options["--stock"]:
        sys.argv[1:] = argv
        runpy.run_module(f"dynamo.{worker}", run_name="__main__", alter_sys=True)
    else:
        from kvrelay_dynamo.__main__ import main as launch
        sys.argv[1:] = [worker, *argv]
        launch()
    print(json.dumps(RESULT))


if __name__ == "__main__":
    main()
