"""``python -m lab COMMAND``: the commands, each in a module of its own.

A command's module has HELP (one line), ``configure(parser)`` and ``run(args)``, which returns the
exit code: 0 for PASSED, 1 for FAILED, 2 for could not run. Only the module asked for is imported.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

COMMANDS = {
    "demo": "lab.demo",
    "run": "lab.run",
    "report": "lab.report",
    "check": "lab.check",
    "emulate": "lab.emulate",
    "submit": "lab.submit",
    "token": "lab.mint",
    "conformance": "lab.conformance",
    "matrix": "lab.matrix",
    "selfbench": "lab.selfbench",
    "floor": "lab.floor",
}


class CannotRun(Exception):
    """The command cannot do its work; the text is one line that names what, and the cure."""


def main(words: Sequence[str]) -> int:
    """Run the command that the words name; return its exit code."""
    if not words or words[0] in {"-h", "--help"}:
        print(overview())
        return 0 if words else 2
    name, *rest = words
    if name not in COMMANDS:
        print(f"lab: no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = _module(name)
    parser = argparse.ArgumentParser(
        prog=f"python -m lab {name}",
        description=(module.__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    args = parser.parse_args(rest)  # ends with exit code 2 by itself
    try:
        return int(module.run(args))
    except CannotRun as reason:
        print(f"lab {name}: {reason}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"lab {name}: stopped", file=sys.stderr)
    except Exception:  # a fault of ours is not a verdict: Python's own 1 would say FAILED
        traceback.print_exc()
    return 2


def overview() -> str:
    """Return the list of commands with their one line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {_module(name).HELP}" for name in COMMANDS]
    heads = ["usage: python -m lab COMMAND [options]", "", "commands:"]
    tail = ["", "exit code: 0 PASSED, 1 FAILED, 2 could not run"]
    return "\n".join([*heads, *lines, *tail])


def _module(name: str) -> ModuleType:
    return importlib.import_module(COMMANDS[name])
