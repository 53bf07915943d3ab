#!/usr/bin/env python3
"""Get the real engines' KV-event code, as small as it goes.

For each engine: pip downloads the wheel by name and version (no dependencies),
only the files named below are unpacked into the cache folder, the wheel is deleted.
Nothing of the engines is kept in this repository.

    fetch_engines.py                        the default set (latest of each)
    fetch_engines.py vllm sglang            the latest of these two
    fetch_engines.py vllm==0.9.2 sglang==0.5.9
    fetch_engines.py --all                  every version listed here; with names: of these engines
    fetch_engines.py --list                 only print what would be fetched, one a line
    fetch_engines.py --where                print the cache folder

The cache folder is $KVRELAY_ENGINES, else `engines` in $KVRELAY_CACHE_DIR, else in `.cache` of the project.
"""
from __future__ import annotations

import argparse
import ctypes.util
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
CACHE = Path(os.environ.get("KVRELAY_ENGINES")
             or Path(os.environ.get("KVRELAY_CACHE_DIR") or PROJECT / ".cache") / "engines").resolve()

# engine -> (distribution on PyPI, files wanted from its wheel)
ENGINES = {
    "vllm": ("vllm", [
        "vllm/distributed/kv_events.py", "vllm/config/kv_events.py", "vllm/envs.py",
        "vllm/v1/*.py", "vllm/v1/core/*.py", "vllm/v1/metrics/*.py", "vllm/v1/hisparse/*.py",
        "vllm/utils/*.py", "vllm/multimodal/utils.py",
    ]),
    "sglang": ("sglang", [
        "sglang/srt/disaggregation/kv_events.py", "sglang/srt/mem_cache/*.py", "sglang/srt/utils/network.py",
        "sglang/srt/observability/*.py", "sglang/srt/metrics/*.py",
    ]),
    "lmcache": ("lmcache", ["lmcache/*.py"]),  # '*' crosses folders here
    "mooncake-master": ("mooncake-transfer-engine-cuda13", [
        "mooncake/mooncake_master", "mooncake_transfer_engine_cuda13.libs/*",
    ]),
    "mooncake-client": ("mooncake-transfer-engine-non-cuda", [
        "mooncake/*.py", "mooncake/*.so", "mooncake_transfer_engine_non_cuda.libs/*",
    ]),
    "ai-dynamo": ("ai-dynamo", ["dynamo/trtllm/publisher.py", "dynamo/trtllm/utils/request_utils.py",
                                "dynamo/vllm/*.py", "dynamo/sglang/*.py", "ai_dynamo-*.dist-info/METADATA"]),
}

# what makes keys in Mooncake Store needs more of the wheel; a folder of its own, as only mooncake_keys.py asks for it
ENGINES["vllm-mooncake"] = ("vllm", [
    *ENGINES["vllm"][1], "vllm/distributed/kv_transfer/kv_connector/v1/mooncake/store/data.py",
])

DEFAULTS = ["vllm==0.33.0", "sglang==0.5.23", "lmcache==0.5.6", "mooncake-master==0.3.14",
            "mooncake-client==0.3.13.post1", "ai-dynamo==1.6.1"]
HISTORY = (["vllm==" + v for v in ("0.9.0", "0.9.2", "0.10.2", "0.14.0", "0.17.0", "0.20.0", "0.22.0", "0.24.0",
                                   "0.26.0", "0.30.0")]
           + ["sglang==" + v for v in ("0.4.6.post5", "0.4.8", "0.5.9", "0.5.17", "0.5.20", "0.5.22")]
           + ["ai-dynamo==1.6.0", *("lmcache==0.5." + n for n in "12345")])

# shared objects that mooncake's binaries want from the system (InfiniBand user-space
# libraries); unpacked from Debian packages beside the wheels, nothing is installed
LIBRARIES = ["ibverbs", "nl-3", "nl-route-3"]
DEBS = ["libibverbs1", "libnl-3-200", "libnl-route-3-200", "ibverbs-providers"]


def folder(engine: str, version: str) -> Path:
    return CACHE / f"{engine}-{version}"


def is_complete(out: Path, wanted: list[str]) -> bool:
    """Whether the folder has what is wanted today; an older one may lack files."""
    stamp = out / ".complete"
    return stamp.is_file() and stamp.read_text() == "\n".join(wanted)


def fetch(engine: str, version: str, seconds: float | None = None) -> Path:
    """Folder with the engine's files; `seconds` bounds the download."""
    out = folder(engine, version)
    dist, wanted = ENGINES[engine]
    if is_complete(out, wanted):
        return out
    CACHE.mkdir(parents=True, exist_ok=True)
    # Beside its goal: the wheel is too big for a small /tmp, and what is unpacked moves there in one step.
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=CACHE) as tmp:
        # Without pip's cache, which would keep all of the wheel for good.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
                   "--disable-pip-version-check", "--dest", tmp, f"{dist}=={version}"]
        try:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=seconds)
        except subprocess.CalledProcessError as e:
            raise SystemExit(f"pip download {dist}=={version} failed with {e.returncode}")
        except subprocess.TimeoutExpired:
            raise SystemExit(f"pip download {dist}=={version} took more than {seconds:g} seconds")
        wheel = next(Path(tmp).glob("*.whl"))
        unpacked = Path(tmp) / "unpacked"
        with zipfile.ZipFile(wheel) as z:
            names = [n for n in z.namelist() if any(fnmatch.fnmatchcase(n, w) for w in wanted)]
            if not names:
                raise SystemExit(f"{wheel.name} has none of {wanted}")
            for n in names:
                path = z.extract(n, unpacked)
                if n.endswith(("mooncake_master", ".so")) or ".libs/" in n:
                    os.chmod(path, 0o755)
        (unpacked / "WHEEL_NAME").write_text(wheel.name + "\n")
        (unpacked / ".complete").write_text("\n".join(wanted))
        if not is_complete(out, wanted):  # another fetch may have been faster
            shutil.rmtree(out, ignore_errors=True)
            os.replace(unpacked, out)
    return out


def fetch_debs() -> Path:
    """The InfiniBand libraries, as a library folder for LD_LIBRARY_PATH."""
    root = CACHE / "debs"
    if not (root / ".complete").is_file():
        root.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", *DEBS], cwd=root, check=True, stdout=subprocess.DEVNULL)
            for deb in root.glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", deb.name, "root"], cwd=root, check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            raise SystemExit(f"no {', '.join(DEBS)}: install them, or make `apt-get download` work ({e})")
        for deb in root.glob("*.deb"):
            deb.unlink()
        (root / ".complete").touch()
    return root / "root"


def library_path() -> str:
    if all(ctypes.util.find_library(name) for name in LIBRARIES):
        return ""
    found = {str(p.parent) for p in fetch_debs().rglob("*.so.*")}
    return ":".join(sorted(found, key=len))


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", nargs="*", metavar="ENGINE[==VERSION]")
    ap.add_argument("--all", action="store_true", help="older versions too, newest first")
    ap.add_argument("--list", action="store_true", help="print what would be fetched")
    ap.add_argument("--no-debs", action="store_true", help="skip the InfiniBand libraries that mooncake needs")
    ap.add_argument("--seconds", type=float, help="how long each wheel may take (default: any time)")
    ap.add_argument("--where", action="store_true")
    a = ap.parse_args()
    if a.where:
        print(CACHE)
        return
    todo = wanted_items(a.what, a.all)
    if a.list:
        print("\n".join(todo))
        return
    for item in todo:
        engine, _, version = item.partition("==")
        print(f"{item}: {fetch(engine, version, a.seconds)}", flush=True)
    if not a.no_debs and any(t.startswith("mooncake") for t in todo):
        print(f"debs: {library_path()}")


def wanted_items(what: list[str], older_too: bool) -> list[str]:
    """ENGINE==VERSION for each thing asked for; a name alone is its latest version, or all of them."""
    known = DEFAULTS + (HISTORY[::-1] if older_too else [])
    items = []
    for name in what or ENGINES:
        if name.partition("==")[0] not in ENGINES:
            raise SystemExit(f"{name}: not one of {', '.join(ENGINES)}")
        items += [name] if "==" in name else [k for k in known if k.startswith(name + "==")]
    return items


if __name__ == "__main__":
    main()
