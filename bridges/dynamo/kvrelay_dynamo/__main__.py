"""`python -m kvrelay_dynamo vllm|sglang [the worker's own arguments]`."""
from __future__ import annotations

import sys

from kvrelay_dynamo.launcher import RefusedError, run
from kvrelay_dynamo.releases import WORKERS

USAGE = f"usage: python -m kvrelay_dynamo {'|'.join(WORKERS)} [arguments of python -m dynamo.WORKER]"


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in WORKERS:
        asks = len(sys.argv) > 1 and sys.argv[1] in ("-h", "--help")
        print(USAGE, file=sys.stdout if asks else sys.stderr)
        raise SystemExit(0 if asks else 2)
    try:
        run(sys.argv[1], sys.argv[2:])
    except RefusedError as error:
        raise SystemExit(f"kvrelay_dynamo: {error}") from None


if __name__ == "__main__":
    main()
