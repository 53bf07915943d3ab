#!/usr/bin/env python3
"""An engine's own metrics page, from the code of its wheel, fed with a usage for each rank.

    engine_metrics.py vllm --usage 0.25 --blocks 400
    engine_metrics.py sglang --version 0.5.9 --usage 0.25 --usage 0.5 --first-rank 4 --tokens 6400

Prints the page once. With one usage the engine runs without data parallelism. Fetches the engine's files where they are
missing; needs prometheus_client.
"""
from __future__ import annotations

import argparse
import dataclasses
import importlib
import inspect
import types

import prometheus_client

import engine_stubs
from fetch_engines import fetch

DEFAULTS = {"vllm": "0.33.0", "sglang": "0.5.23"}


class Unset(types.SimpleNamespace):
    """A configuration in which all that is not given is off."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def flush_page() -> None:
    registry = prometheus_client.REGISTRY
    print(prometheus_client.generate_latest(registry).decode(), end="")
    for collector in list(registry._collector_to_names):
        registry.unregister(collector)


def vllm(version: str, args: argparse.Namespace) -> None:
    real = ["loggers", "stats", "utils", "buckets", "cache_hit_source", "prometheus"]
    root = fetch("vllm", version)
    engine_stubs.activate(root, ["vllm"], [f"vllm.v1.metrics.{name}" for name in real
                                           if (root / f"vllm/v1/metrics/{name}.py").is_file()], ["torch"])
    from vllm.v1.metrics import loggers
    ranks = list(range(args.first_rank, args.first_rank + len(args.usage)))
    info = {"block_size": "16", "num_gpu_blocks": str(args.blocks), "num_cpu_blocks": "None"}
    cache = Unset(num_gpu_blocks=args.blocks, block_size=16, metrics_info=lambda: dict(info))
    config = Unset(cache_config=cache, model_config=Unset(served_model_name="m", max_model_len=4096, is_diffusion=False),
                   observability_config=Unset(show_hidden_metrics=False), parallel_config=Unset())
    # Before 0.10 an engine has a logger of its own.
    of_all = "engine_indexes" in inspect.signature(loggers.PrometheusStatLogger.__init__).parameters
    usage = next(field.name for field in dataclasses.fields(loggers.SchedulerStats) if field.name.endswith("cache_usage"))
    for group in [ranks] if of_all else [[rank] for rank in ranks]:
        logger = loggers.PrometheusStatLogger(config, group if of_all else group[0])
        logger.log_engine_initialized()
        for rank in group:
            stats = loggers.SchedulerStats(**{usage: args.usage[rank - args.first_rank]})
            logger.record(stats, None, **({"engine_idx": rank} if of_all else {}))


def sglang(version: str, args: argparse.Namespace) -> None:
    settings = Unset(prefill_delayer_max_delay_passes=30)
    root = fetch("sglang", version)
    new = (root / "sglang/srt/observability/metrics_collector.py").is_file()
    name = "sglang.srt.observability.metrics_collector" if new else "sglang.srt.metrics.collector"
    engine_stubs.activate(root, ["sglang"], [name, "sglang.srt.observability.utils", "sglang.srt.metrics.utils",
                                             "sglang.srt.observability.scheduler_stage_metrics"], ["torch"],
                          {"sglang.srt.runtime_context": {"get_schedule": lambda: settings}})
    metrics = importlib.import_module(name)
    for offset, usage in enumerate(args.usage):
        labels = {"model_name": "m", "engine_type": "unified", "tp_rank": 0, "pp_rank": 0, "moe_ep_rank": 0}
        if len(args.usage) > 1 or args.first_rank > 0:
            labels["dp_rank"] = args.first_rank + offset
        wanted = inspect.signature(metrics.SchedulerMetricsCollector.__init__).parameters
        collector = metrics.SchedulerMetricsCollector(
            labels=labels, **({"server_args": settings} if "server_args" in wanted else {}))
        stats = metrics.SchedulerStats()
        stats.token_usage = usage
        if hasattr(stats, "max_total_num_tokens"):
            stats.max_total_num_tokens = args.tokens
        else:
            constants = inspect.signature(collector.emit_constants).parameters
            values = {**dict.fromkeys(constants, 1), "graph_memory_usage_gb": {}, "max_total_num_tokens": args.tokens}
            collector.emit_constants(**values)
        collector.log_stats(stats)
        # Each rank is a process with a registry of its own; the page has the samples of all.
        flush_page()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(DEFAULTS))
    parser.add_argument("--version")
    parser.add_argument("--usage", type=float, action="append", required=True, help="of a rank, 0 to 1; once a rank")
    parser.add_argument("--first-rank", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=400, help="vLLM: of all ranks together")
    parser.add_argument("--tokens", type=int, default=6400, help="SGLang: of each rank")
    args = parser.parse_args()
    {"vllm": vllm, "sglang": sglang}[args.engine](args.version or DEFAULTS[args.engine], args)
    flush_page()


if __name__ == "__main__":
    main()
