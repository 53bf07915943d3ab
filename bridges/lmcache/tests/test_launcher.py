"""Settings and start of the bridge."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import BUS, EVENT
from receiver import Receiver, free_endpoint

from kvrelay_lmcache.launcher import RefusedError, bridged
from kvrelay_lmcache.settings import Settings, SettingsError, settings_from

BRIDGE = Path(__file__).resolve().parents[1]


def test_without_variables_the_defaults_hold() -> None:
    assert settings_from({"PATH": "/bin", "KVRELAY_HTTP": "off"}) == Settings()


def test_each_variable_is_read() -> None:
    assert settings_from({
        "KVRELAY_BRIDGE_ENDPOINT": "ipc:///tmp/a", "KVRELAY_BRIDGE_REPLAY_ENDPOINT": "", "KVRELAY_BRIDGE_QUEUE_EVENTS": "1",
        "KVRELAY_BRIDGE_BATCH_EVENTS": "2", "KVRELAY_BRIDGE_MAX_EVENT_BYTES": "3", "KVRELAY_BRIDGE_BUFFER_MESSAGES": "4",
        "KVRELAY_BRIDGE_BUFFER_BYTES": "5", "KVRELAY_BRIDGE_SEND_HWM": "6", "KVRELAY_BRIDGE_SKIP": "trace.call, mp.lookup,",
    }) == Settings("ipc:///tmp/a", "", 1, 2, 3, 4, 5, 6, frozenset({"trace.call", "mp.lookup"}))


@pytest.mark.parametrize("variable, text", [
    ("QUEUE_EVENTS", "0"), ("QUEUE_EVENTS", "-1"), ("BATCH_EVENTS", "many"), ("ENDPOINT", ""), ("ENDPOINT", "localhost:5571"),
    ("REPLAY_ENDPOINT", "udp://x"), ("QUEUE", "1"),
])
def test_a_value_that_cannot_be_used_is_named(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"^KVRELAY_BRIDGE_{variable}={text}: "):
        settings_from({f"KVRELAY_BRIDGE_{variable}": text})


@pytest.mark.parametrize("text", ["1000000001", "9" * 5000])
def test_a_number_that_no_socket_takes_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="^KVRELAY_BRIDGE_SEND_HWM=.{1,100}: must be a whole number from 1 to "):
        settings_from({"KVRELAY_BRIDGE_SEND_HWM": text})


def test_a_bus_that_lmcache_makes_has_the_bridge(capsys: pytest.CaptureFixture[str]) -> None:
    one = Settings(endpoint=free_endpoint(), replay_endpoint="")
    bus = bridged(BUS.init_event_bus, one)(BUS.EventBusConfig(enabled=True))
    assert bus is BUS.get_event_bus()
    bus.start()
    receiver = Receiver(bus._registered_subscribers[-1].sender, one.endpoint)
    bus.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_START, session_id="r1"))
    assert [session for _, _, session, _ in receiver.events(1)] == ["r1"]
    receiver.close()
    bus.stop()
    assert capsys.readouterr().err == f"kvrelay_lmcache: events on {one.endpoint}, replay on nothing\n"


def test_the_start_of_lmcaches_own_observability_gets_the_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    import lmcache.v1.mp_observability.config as config

    one = Settings(endpoint=free_endpoint(), replay_endpoint="")
    monkeypatch.setattr(BUS, "init_event_bus", bridged(BUS.init_event_bus, one))
    bus = config.init_observability(config.ObservabilityConfig(metrics_enabled=False, tracing_enabled=False))
    receiver = Receiver(bus._registered_subscribers[0].sender, one.endpoint)
    bus.publish(EVENT.Event(EVENT.EventType.MP_REQUEST_END, session_id="r1"))
    assert [session for _, _, session, _ in receiver.events(1)] == ["r1"]
    receiver.close()
    bus.stop()


def test_a_bus_that_is_disabled_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    bus = bridged(BUS.init_event_bus, Settings(endpoint="tcp://nowhere.invalid:1"))(config=BUS.EventBusConfig(enabled=False))
    assert not bus.has_subscribers(EVENT.EventType.MP_REQUEST_START)
    assert "disabled" in capsys.readouterr().err


def test_a_bridge_that_cannot_bind_ends_the_start_with_one_line() -> None:
    with pytest.raises(RefusedError, match="^cannot bind tcp://nowhere.invalid:1 or [^\n]*$"):
        bridged(BUS.init_event_bus, Settings(endpoint="tcp://nowhere.invalid:1"))(BUS.EventBusConfig(enabled=True))


def command(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(BRIDGE), **variables}
    return subprocess.run([sys.executable, "-m", "kvrelay_lmcache", *args], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_says_how_it_is_used() -> None:
    assert command().returncode == 2
    asked = command("--help")
    assert asked.returncode == 0 and asked.stdout.startswith("usage: ")


def test_the_command_ends_with_one_line_where_it_cannot_start() -> None:
    bad = command("server", KVRELAY_BRIDGE_QUEUE_EVENTS="no")
    assert (bad.returncode, bad.stderr) == (2, "kvrelay_lmcache: KVRELAY_BRIDGE_QUEUE_EVENTS=no: must be a whole number from 1 to 1000000000\n")
    alone = command("server")
    assert alone.returncode == 1
    assert alone.stderr == "kvrelay_lmcache: LMCache is not here (lmcache); start this with the Python of the LMCache server\n"


def test_the_command_runs_lmcaches_own_with_its_arguments(tmp_path: Path) -> None:
    modules = {
        "lmcache/__init__.py": "", "lmcache/cli/__init__.py": "", "lmcache/v1/__init__.py": "",
        "lmcache/v1/mp_observability/__init__.py": "",
        "lmcache/v1/mp_observability/event_bus.py": "def init_event_bus(config=None):\n    return 'bus'\n",
        "lmcache/cli/main.py": "import sys\nfrom lmcache.v1.mp_observability.event_bus import init_event_bus\n"
                               "print(__name__, sys.argv, init_event_bus.__name__)\n",
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = command("server", "--port", "5", PYTHONPATH=f"{BRIDGE}{os.pathsep}{tmp_path}")
    assert done.stdout == "__main__ ['lmcache', 'server', '--port', '5'] init_with_bridge\n", done.stderr
