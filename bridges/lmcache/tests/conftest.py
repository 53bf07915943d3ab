"""LMCache's released code, unpacked by test/peers/fetch_engines.py; `KVRELAY_LMCACHE` names the version."""
from __future__ import annotations

import os
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parents[3] / "test" / "peers"
sys.path.insert(0, str(PEERS))

import lmcache_bus  # noqa: E402

EVENT, BUS = lmcache_bus.load(os.environ.get("KVRELAY_LMCACHE", lmcache_bus.DEFAULT))
