"""Commands for a peer: one JSON object a line on standard input, one answer a line on standard output.

    {"op": "put", "key": "k1"}      ->  {"result": 0}   or   {"error": "..."}

The peer says {"state": "ready", ...} first and ends with its standard input.
"""
from __future__ import annotations

import json
import os
import sys


def take_over_stdout():
    """A stream for answers alone: what libraries print goes to standard error from now on."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def serve(answers, ready: dict, operations: dict) -> None:
    """`operations`: name -> function of the command's other fields; its value is the result."""
    print(json.dumps({"state": "ready", **ready}), file=answers)
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            command = json.loads(line)
            answer = {"result": operations[command.pop("op")](**command)}
        except Exception as e:  # noqa: BLE001 - whatever it is, the caller has to see it
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), file=answers)
