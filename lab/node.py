"""Node 22 and the official conformance suite, as npm packages in a folder that git ignores."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".live" / "conformance"
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"  # `latest` lacks 2026-07-28
NODE = "node@22"  # the suite needs fs.globSync, which Node 20 does not have


class NodeMissing(Exception):
    """The suite cannot be had; the text is one line with the cure."""


def suite() -> list[str]:
    """Return the command of the suite under Node 22, installed if need be."""
    modules = FOLDER / "node_modules"
    program = [
        str(modules / ".bin" / "node"),
        str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
    ]
    if not all(Path(part).exists() for part in program):
        _install()
    if not all(Path(part).exists() for part in program):
        raise NodeMissing(f"npm installed {SUITE} and {NODE}, but not where they were expected")
    return program


def _install() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing("npm is not on the PATH: install Node.js (any version brings npm)")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent", SUITE, NODE],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NodeMissing(f"npm could not install {SUITE}: {last}")
