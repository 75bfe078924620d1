"""The command: `python -m lab.standins --run-dir DIR [--faults published] …`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from lab.standins.faults import DEFAULT_SEED, FlagError, Options, parse_slow, parse_tool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(message)


def parse(words: Sequence[str]) -> tuple[Path, Options]:
    """Read the command line; raise FlagError with one line for what cannot be obeyed."""
    parser = _Parser(prog="python -m lab.standins", description=sys.modules["lab.standins"].__doc__)
    add = parser.add_argument
    add("--run-dir", type=Path, required=True, metavar="DIR", help="gets a folder 'standins'")
    add("--seed", type=int, default=DEFAULT_SEED, metavar="N", help="of latencies and faults")
    add("--faults", choices=("published",), help="GitHub's code search fails 3 times in 84")
    add("--slow", action="extend", nargs="+", default=[], metavar="LABEL:TOOL=MS", help="add ms")
    add("--broken", action="extend", nargs="+", default=[], metavar="LABEL:TOOL", help="isError")
    add("--sessions", choices=("on", "off"), default="on", help="of learn and github; on")
    add("--latency", choices=("published", "none"), default="published")
    flags = parser.parse_args(words)
    options = Options(
        seed=flags.seed,
        faults=flags.faults is not None,
        latency=flags.latency == "published",
        sessions=flags.sessions == "on",
        slow=dict(parse_slow(text) for text in flags.slow),
        broken=frozenset(parse_tool("--broken", text) for text in flags.broken),
    )
    return flags.run_dir, options


def main() -> int:
    """Serve until told to stop; 0 then, 2 when a flag or the folder was no good."""
    try:
        run_dir, options = parse(sys.argv[1:])
        # Not before the flags are known to be good: the SDK takes a second to import.
        from lab.standins.host import host

        asyncio.run(host(run_dir, options))
    except (FlagError, OSError) as error:
        print(f"stand-ins: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
