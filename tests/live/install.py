"""Install the real servers, pinned, into .live: `python -m tests.live.install` (make live-setup).

From PyPI and npm only, each Python server in an environment of its own, as their SDKs exclude
one another. Done once: a stamp holds the pins that were installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIVE = Path(__file__).parents[2] / ".live"

PYTHON = {
    "mcp1": ["mcp==1.30.0", "mcp-proxy==0.13.0", "mcp-server-time==2026.10.10"],
    "mcp2": ["mcp==2.3.0"],
    "fastmcp": ["fastmcp==4.2.3"],
    "echo": ["mcp-echo-streamablehttp-server-stateless==0.2.0"],
}
NODE = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
    "@upstash/context7-mcp@4.1.1",
    "mcp-proxy@6.7.19",
]


def _run(command: Sequence[str | Path]) -> None:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        words = " ".join(str(word) for word in command)
        raise SystemExit(f"{words} failed:\n{finished.stdout[-2000:]}{finished.stderr[-2000:]}")


def _python(name: str) -> str:
    folder = LIVE / name
    venv.create(folder, with_pip=True, clear=True)
    quiet = ["--quiet", "--disable-pip-version-check"]
    _run([folder / "bin" / "python", "-m", "pip", "install", *quiet, *PYTHON[name]])
    return name


def _node(npm: str) -> str:
    shutil.rmtree(LIVE / "node_modules", ignore_errors=True)
    (LIVE / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run([npm, "install", "--prefix", LIVE, *quiet, *NODE])
    return "node_modules"


def main() -> int:
    """Install what the stamp does not hold yet, two at a time, and say how long it took."""
    npm = shutil.which("npm")
    pins = {**PYTHON, **({"node_modules": NODE} if npm else {})}
    stamp = LIVE / "installed.json"
    LIVE.mkdir(exist_ok=True)
    have = json.loads(stamp.read_text(encoding="utf-8")) if stamp.is_file() else {}
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        running = [pool.submit(_python, name) for name in PYTHON if have.get(name) != pins[name]]
        if npm and have.get("node_modules") != NODE:
            running.append(pool.submit(_node, npm))
        for each in running:
            print(f"installed {each.result()} into {LIVE.name}")
    stamp.write_text(json.dumps(pins, indent=1), encoding="utf-8")
    if not npm:
        print("npm is not on the PATH: the servers in Node are left out, and their tests skipped")
    print(f"make live-setup took {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
