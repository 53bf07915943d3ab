"""Checks the installed worker, then runs its own entry point with the replacements in place.

The check reads files and imports no engine: a worker that is not one of the known releases is refused before anything
is loaded. A module's functions are replaced when the worker itself imports it, so that nothing is loaded earlier than usual.
"""
from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import runpy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from kvrelay_dynamo.releases import RELEASES, WORKERS, Replacement


class RefusedError(Exception):
    """The installed worker is none that this launcher knows; the message is one line with the remedy."""


def run(worker: str, argv: Sequence[str]) -> None:
    """Runs `python -m dynamo.<worker> argv...` in this process; returns or raises as that does."""
    replacements = WORKERS[worker]
    release = check(replacements)
    sys.meta_path.insert(0, ReplacingFinder(replacements))
    print(
        f"kvrelay_dynamo: ai-dynamo {release}, {worker} worker without its own KV event publisher",
        file=sys.stderr,
        flush=True,
    )
    sys.argv[1:] = argv
    runpy.run_module(f"dynamo.{worker}", run_name="__main__", alter_sys=True)


def check(replacements: Iterable[Replacement]) -> str:
    """The installed release. Raises RefusedError where it is not known or a function is not as released."""
    try:
        release = importlib.metadata.version("ai-dynamo")
    except importlib.metadata.PackageNotFoundError:
        raise RefusedError("ai-dynamo is not installed; start this with the Python of the worker") from None
    if release not in RELEASES:
        known = ", ".join(RELEASES)
        raise RefusedError(
            f"ai-dynamo {release} is not known (known: {known}); take one of these, or a newer kvrelay-dynamo"
        )
    for replacement in replacements:
        name = f"{replacement.module}.{replacement.qualname}"
        if source_sha256(replacement.module, replacement.qualname) != replacement.sha256:
            raise RefusedError(
                f"{name} is not as in the released ai-dynamo {release}; install the released wheel"
            )
        if replacement.module in sys.modules:
            raise RefusedError(f"{replacement.module} is loaded already; start the worker by this launcher alone")
    return release


def source_sha256(module: str, qualname: str) -> str | None:
    """Digest of a function's source, read from its file; None where there is no such function."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    text = Path(spec.origin).read_text(encoding="utf-8")
    body: list[ast.stmt] = ast.parse(text).body
    node: ast.stmt | None = None
    for name in qualname.split("."):
        found = [one for one in body if getattr(one, "name", None) == name]
        if len(found) != 1:
            return None
        node = found[0]
        body = getattr(node, "body", [])
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class ReplacingFinder(importlib.abc.MetaPathFinder):
    """Lets others find a module, and replaces functions in it right after it has run."""

    def __init__(self, replacements: Iterable[Replacement]) -> None:
        self._pending: dict[str, list[Replacement]] = {}
        for replacement in replacements:
            self._pending.setdefault(replacement.module, []).append(replacement)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        # Taken out first: the search below comes by here again.
        replacements = self._pending.pop(fullname, None)
        if replacements is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        run_module = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run_module(module)
            for replacement in replacements:
                replace(module, replacement)

        # Of this one loader, which has this one module.
        setattr(spec.loader, "exec_module", exec_module)
        return spec


def replace(module: ModuleType, replacement: Replacement) -> None:
    *owners, name = replacement.qualname.split(".")
    owner: object = module
    for part in owners:
        owner = getattr(owner, part)
    if not callable(getattr(owner, name, None)):
        raise RefusedError(f"{replacement.module} has no {replacement.qualname} once it is loaded")
    setattr(owner, name, replacement.by)
