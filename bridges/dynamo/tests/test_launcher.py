"""The launcher against the released workers' own code; `KVRELAY_AI_DYNAMO` is the folder of an unpacked ai-dynamo wheel.

Engine and runtime are stand-ins (driver.py): no GPU, no vLLM, no SGLang.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kvrelay_dynamo.launcher import source_sha256
from kvrelay_dynamo.releases import RELEASES, WORKERS

BRIDGE = Path(__file__).resolve().parents[1]
DRIVER = Path(__file__).with_name("driver.py")
RELEASED = Path(os.environ["KVRELAY_AI_DYNAMO"])
TIMEOUT_SECONDS = 60


def python(*args: object, dynamo: Path | None = RELEASED) -> subprocess.CompletedProcess[str]:
    """A Python of its own that finds the launcher and, unless None, this Dynamo."""
    folders = [BRIDGE] if dynamo is None else [BRIDGE, dynamo]
    env: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)),
                              "KVRELAY_AI_DYNAMO": str(dynamo)}
    return subprocess.run([sys.executable, *map(str, args)], env=env, capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS, check=False)


def started(*args: str, dynamo: Path = RELEASED) -> tuple[dict[str, object], str]:
    """What came of a start, and what it said on standard error."""
    done = python(DRIVER, *args, dynamo=dynamo)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result, done.stderr


def launched_by_hand(*args: str, dynamo: Path | None) -> subprocess.CompletedProcess[str]:
    return python("-m", "kvrelay_dynamo", *args, dynamo=dynamo)


@pytest.fixture
def dynamo(tmp_path: Path) -> Path:
    """A copy of the released folder, to be changed."""
    return Path(shutil.copytree(RELEASED, tmp_path / "dynamo"))


@pytest.mark.parametrize("worker", WORKERS)
def test_the_stock_worker_sets_a_publisher_up_for_each_rank(worker: str) -> None:
    result, _ = started(worker, "--stock")
    assert (result["publishers"], result["returned"]) == (2, 2)


@pytest.mark.parametrize("worker, returned", [("vllm", None), ("sglang", 0)])
def test_the_launcher_leaves_it_out_and_says_so_in_one_line(worker: str, returned: int | None) -> None:
    result, said = started(worker)
    assert (result["publishers"], result["owners"], result["returned"]) == (0, 0, returned)
    lines = [line for line in said.splitlines() if line.startswith("kvrelay_dynamo:")]
    assert len(lines) == 1
    assert f"{worker} worker without its own KV event publisher" in lines[0]


@pytest.mark.parametrize("worker", WORKERS)
def test_the_workers_own_entry_point_gets_the_arguments_as_they_are(worker: str) -> None:
    given = ["--model", "a b", "--kv-events-config", '{"publisher": "zmq"}', "--help-me"]
    result, _ = started(worker, *given)
    assert result["argv"] == given


def test_a_state_agent_is_left_out_too() -> None:
    stock, _ = started("vllm", "--stock", "--state-agent")
    assert (stock["publishers"], stock["owners"]) == (0, 1)
    result, _ = started("vllm", "--state-agent")
    assert (result["publishers"], result["owners"]) == (0, 0)


def test_gateway_mode_ends_with_one_line() -> None:
    done = python(DRIVER, "sglang", "--gateway")
    assert done.returncode == 1
    assert "gateway mode is not possible beside kvrelay" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("replacement", [one for all_of in WORKERS.values() for one in all_of], ids=lambda one: one.qualname)
def test_the_digests_are_those_of_the_released_sources(replacement, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(RELEASED))
    assert source_sha256(replacement.module, replacement.qualname) == replacement.sha256
    assert source_sha256(replacement.module, f"{replacement.qualname}_of_another_release") is None


@pytest.mark.parametrize("worker, path", [("vllm", "dynamo/vllm/main.py"), ("sglang", "dynamo/sglang/publisher.py")])
def test_a_publisher_that_is_not_as_released_is_refused_before_anything_is_loaded(
    worker: str, path: str, dynamo: Path
) -> None:
    source = dynamo / path
    text = source.read_text(encoding="utf-8")
    changed = text.replace("KvEventPublisher(\n", "KvEventPublisher(  # patched\n")
    assert changed != text
    source.write_text("raise SystemExit('loaded')\n" + changed, encoding="utf-8")
    done = launched_by_hand(worker, dynamo=dynamo)
    assert done.returncode == 1
    assert "is not as in the released ai-dynamo" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("worker", WORKERS)
def test_another_release_is_refused_and_the_known_ones_are_named(worker: str, dynamo: Path) -> None:
    (info,) = dynamo.glob("ai_dynamo-*.dist-info")
    metadata = info / "METADATA"
    (line,) = [line for line in metadata.read_text(encoding="utf-8").splitlines() if line.startswith("Version:")]
    metadata.write_text(metadata.read_text(encoding="utf-8").replace(line, "Version: 1.7.0"), encoding="utf-8")
    info.rename(dynamo / "ai_dynamo-1.7.0.dist-info")
    done = launched_by_hand(worker, dynamo=dynamo)
    assert done.returncode == 1
    assert done.stderr.startswith(f"kvrelay_dynamo: ai-dynamo 1.7.0 is not known (known: {', '.join(RELEASES)})")
    assert done.stderr.count("\n") == 1


def test_without_a_worker_there_is_one_line() -> None:
    done = launched_by_hand("vllm", dynamo=None)
    assert done.returncode == 1
    assert done.stderr.startswith("kvrelay_dynamo: ai-dynamo is not installed")


def test_a_wrong_worker_is_a_usage_error() -> None:
    for args in ([], ["trtllm"]):
        done = launched_by_hand(*args, dynamo=None)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: python -m kvrelay_dynamo vllm|sglang ")
    assert launched_by_hand("--help", dynamo=None).returncode == 0


def test_it_is_a_package(tmp_path: Path) -> None:
    # From a copy: the build leaves its files beside the sources.
    copy = shutil.copytree(BRIDGE, tmp_path / "bridge", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
    subprocess.run([*pip, "--target", tmp_path / "site", copy], check=True, timeout=TIMEOUT_SECONDS)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-m", "kvrelay_dynamo", "--help"], env=env, cwd=tmp_path,
                          capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.stdout.startswith("usage: ")
    assert (tmp_path / "site" / "kvrelay_dynamo" / "py.typed").is_file()
