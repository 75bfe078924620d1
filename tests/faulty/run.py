"""All cases of the faulty server at once, in one Locust process: what both sides saw."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.locust_process import Seen, run_locust

HERE = Path(__file__).parent
SERVER = HERE / "faulty_server.py"
USERS = str(HERE / "faulty_users.py")
TIMEOUT = 3.0  # seconds a user waits for an answer
PAUSE = (0.3, 0.5)  # and thinks between two; idle connections of some cases die after 0.2
SPAWN_RATE = "80"  # more in one burst stall the process for as long as idle connections live
TOKEN = "s3cr3t-T0ken"

Json = dict[str, Any]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class FaultyServer:
    """The running server's two addresses."""

    plain: str
    tls: str

    def reset(self) -> None:
        request = urllib.request.Request(f"{self.plain}/__reset", method="POST")
        _DIRECT.open(request, timeout=10).close()

    def saw(self) -> dict[str, Json]:
        """What it saw of each path since the last reset."""
        with _DIRECT.open(f"{self.plain}/__stats", timeout=10) as answer:
            paths: dict[str, Json] = json.load(answer)["paths"]
        return paths


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextlib.contextmanager
def serving() -> Iterator[FaultyServer]:
    """Start the faulty server, wait until it listens, and stop it whatever happens."""
    port, tls_port = free_port(), free_port()
    arguments = ["--port", str(port), "--tls-port", str(tls_port)]
    with subprocess.Popen(
        [sys.executable, str(SERVER), *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert "faulty MCP server" in process.stdout.readline()
            yield FaultyServer(f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}")
        finally:
            process.kill()


def cases() -> list[Json]:
    """The list of the server: path, when, verdict and the line that says how it has to end."""
    command = [sys.executable, str(SERVER), "--list", "--json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[Json] = json.loads(listed.stdout)
    return found


def plan(server: FaultyServer, path: str, label: str = "", **more: Any) -> Json:
    """One User class; `label` is the path's own name unless a case needs several classes."""
    label = label or path.lstrip("/")
    return {
        "label": label,
        "class": "User" + re.sub(r"\W", "_", label.title()),
        "host": server.plain,
        "path": path,
        "users": 1,
        "check": "has_marker",
        "pause": None,
        "stateless": False,
        "requires_session": False,
        "insecure": False,
        "token": TOKEN,
        "renews": False,
        "timeout": TIMEOUT,
        **more,
    }


def pace(pause: tuple[float, float] = PAUSE) -> dict[str, str]:
    """The variables by which every pause of a run is drawn from one range."""
    shortest, longest = (f"{seconds:g}" for seconds in pause)
    return {
        "MCP_INTRA_MIN": shortest,
        "MCP_INTRA_MAX": longest,
        "MCP_TURN_MIN": shortest,
        "MCP_TURN_MAX": longest,
    }


def run_plans(
    plans: list[Json],
    folder: Path,
    seconds: float,
    *arguments: str,
    pause: tuple[float, float] = PAUSE,
    **variables: str,
) -> Seen:
    """Run these classes for so long; running calls may end after it."""
    folder.mkdir(parents=True, exist_ok=True)
    described = folder / "plan.json"
    described.write_text(json.dumps(plans), encoding="utf-8")
    total = str(sum(each["users"] for each in plans))
    command = ["--headless", "-u", total, "-r", SPAWN_RATE, "-t", f"{seconds:g}s"]
    command += ["--stop-timeout", "8", "--exit-code-on-error", "0", *arguments]
    variables = {**pace(pause), "FAULTY_PLAN": str(described), **variables}
    return run_locust(USERS, command, folder, seconds + 60, **variables)
