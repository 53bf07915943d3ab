"""`python -m kvrelay_lmcache server [LMCache's own arguments]`."""
from __future__ import annotations

import os
import sys

from kvrelay_lmcache.launcher import RefusedError, run
from kvrelay_lmcache.settings import SettingsError, settings_from

USAGE = "usage: python -m kvrelay_lmcache server [arguments of `lmcache server`]"


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] != "server":
        asks = len(sys.argv) > 1 and sys.argv[1] in ("-h", "--help")
        print(USAGE, file=sys.stdout if asks else sys.stderr)
        raise SystemExit(0 if asks else 2)
    try:
        run(sys.argv[1:], settings_from(os.environ))
    except SettingsError as error:
        print(f"kvrelay_lmcache: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except RefusedError as error:
        raise SystemExit(f"kvrelay_lmcache: {error}") from None


if __name__ == "__main__":
    main()
