"""The null server as a target: built from ``lab/perf/null_server.c`` and asked for what it saw.

    with NullServer("sse") as server:
        load(server.url)
        print(server.stats().requests)

It answers in microseconds, or after delays that it draws and keeps a record of, so that what is
measured against it is the load generator itself. Linux and a C compiler are needed.
"""

from __future__ import annotations

import csv
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lab.cli import CannotRun
from lab.targets import Target

SOURCE = Path(__file__).parent / "perf" / "null_server.c"


@dataclass(frozen=True, slots=True)
class Stats:
    """What the server has done since its start: MCP requests answered, CPU seconds."""

    requests: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """One tools/call in the server's own record.

    took_us is from the last byte of the request to the write of the answer's last byte.
    """

    id: str
    drawn_us: int
    took_us: float


@cache
def program() -> Path:
    """Build the server once for this process, and return its path."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), "")
    if sys.platform != "linux" or not compiler:
        raise CannotRun("the null server needs Linux and a C compiler (cc): install gcc or clang")
    folder = Path(_folder().name)
    built = folder / "null_server"
    command = [compiler, "-O2", "-w", "-o", str(built), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        first = (done.stderr.strip() or "without a word").splitlines()[0]
        raise CannotRun(f"{compiler} cannot build {SOURCE.name}: {first}")
    return built


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="null_server-")  # removed when we exit


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class NullServer(Target):
    """A null server on a free port, until the block is left.

    mode    "json", "sse" (a stream that ends) or "open" (one that stays open after the reply)
    text    bytes of text in each of the `blocks` of a tool's result
    events  progress notifications before the reply of a stream, as large as a block each
    delays  tool -> "MS" or "MS,OTHER_MS:SHARE"; other tools answer at once
    record  the file that gets its record when it stops
    """

    def __init__(
        self,
        mode: str = "json",
        *,
        text: int = 200,
        blocks: int = 1,
        events: int = 0,
        delays: Mapping[str, str] | None = None,
        seed: int = 1,
        record: Path | None = None,
    ) -> None:
        self._port = free_port()
        flags: list[tuple[str, object]] = [("--mode", mode), ("--text", text), ("--seed", seed)]
        flags += [("--blocks", blocks), ("--events", events)]
        flags += [("--delay", f"{tool}={delay}") for tool, delay in (delays or {}).items()]
        if record is not None:
            flags.append(("--record", record))
        words = [str(word) for flag in flags for word in flag]
        super().__init__([str(program()), str(self._port), *words], ready="^listening on")

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return f"http://127.0.0.1:{self._port}/mcp"

    def stats(self) -> Stats:
        """Ask the running server what it has done so far."""
        found = json.loads(self._answer("GET", "/stats"))
        return Stats(int(found["requests"]), float(found["cpu_s"]))

    def reply_size(self) -> int:
        """Return the bytes of the body of its answer to a tools/call."""
        call = {"jsonrpc": "2.0", "id": 1 << 52, "method": "tools/call", "params": {"name": "echo"}}
        return len(self._answer("POST", "/mcp", json.dumps(call)))

    def _answer(self, method: str, path: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10.0)
        try:
            connection.request(method, path, body)
            return connection.getresponse().read()
        finally:
            connection.close()


def read_record(path: Path) -> list[Answered]:
    """Read what a stopped server has kept."""
    with path.open(newline="", encoding="ascii") as file:
        return [Answered(each[0], int(each[1]), float(each[2])) for each in csv.reader(file)]


def ports_waiting(port: int, tables: Sequence[str] = ("/proc/net/tcp", "/proc/net/tcp6")) -> int:
    """Return how many ports wait in TIME_WAIT for their connection to a port to be forgotten."""
    ends = f":{port:04X}"
    count = 0
    for table in map(Path, tables):
        rows = table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else []
        fields = [row.split() for row in rows]
        count += sum(f[3] == "06" and (f[1].endswith(ends) or f[2].endswith(ends)) for f in fields)
    return count
