"""The real servers, pinned, installed into `.live`, a folder that git ignores.

From PyPI and npm only, each Python server in an environment of its own, as their SDKs exclude
one another. Done once: a stamp holds the pins that were installed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.cli import CannotRun

LIVE = Path(__file__).parents[2] / ".live"
NODE_KIT = "node_modules"
KITS = {
    "mcp1": ["mcp==1.30.0", "mcp-proxy==0.13.0", "mcp-server-time==2026.10.10"],
    "mcp1.10": ["mcp==1.10.1", "pydantic==2.11.10"],  # of mid-2025; newer pydantic breaks it
    "mcp2": ["mcp==2.3.0"],
    "fastmcp": ["fastmcp==4.2.3"],
    "echo": ["mcp-echo-streamablehttp-server-stateless==0.2.0"],
    "go": ["jmrplens-gitlab-mcp-server==3.3.0"],
    NODE_KIT: [
        "@modelcontextprotocol/server-everything@2026.8.31",
        "@modelcontextprotocol/sdk@1.32.2",
        "@modelcontextprotocol/server@2.4.0",
        "@modelcontextprotocol/node@2.1.2",
        "@upstash/context7-mcp@4.1.1",
        "mcp-proxy@6.7.19",
        "zod@4.6.7",
    ],
}
"""What is installed together -> its pins."""
STAMP = LIVE / "installed.json"


def installed() -> dict[str, list[str]]:
    """Return the kits that are installed with the pins of `KITS`."""
    have = json.loads(STAMP.read_text(encoding="utf-8")) if STAMP.is_file() else {}
    return {kit: pins for kit, pins in KITS.items() if have.get(kit) == pins}


def install() -> None:
    """Install what is not, two kits at a time, and say how long it took; CannotRun on failure.

    Without npm the servers in Node are left out, and that is said.
    """
    npm = shutil.which("npm")
    LIVE.mkdir(exist_ok=True)
    have = installed()
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        running = [pool.submit(_python, kit) for kit in KITS if kit not in {*have, NODE_KIT}]
        if npm and NODE_KIT not in have:
            running.append(pool.submit(_node, npm))
        for each in running:
            kit = each.result()
            have[kit] = KITS[kit]
            STAMP.write_text(json.dumps(have, indent=1), encoding="utf-8")
            print(f"installed {kit} into {LIVE.name}", flush=True)
    if not npm:
        print("npm is not on the PATH: the servers in Node are left out; install Node.js")
    print(f"the real servers are installed, in {time.monotonic() - began:.0f} s")


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(str(word) for word in command)
        last = ((done.stderr or done.stdout).strip().splitlines() or ["it said nothing"])[-1]
        raise CannotRun(f"{words} ended with {done.returncode}: {last}")


def _python(kit: str) -> str:
    folder = LIVE / kit
    venv.create(folder, with_pip=True, clear=True)
    quiet = ["--quiet", "--disable-pip-version-check"]
    _run([folder / "bin" / "python", "-m", "pip", "install", *quiet, *KITS[kit]])
    return kit


def _node(npm: str) -> str:
    shutil.rmtree(LIVE / NODE_KIT, ignore_errors=True)
    (LIVE / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run([npm, "install", "--prefix", LIVE, *quiet, *KITS[NODE_KIT]])
    return NODE_KIT
