"""All four stand-ins in one process and one event loop, each on a free loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn

from lab.standins import ado_answers
from lab.standins.catalogue import LABELS
from lab.standins.faults import Fates, Options
from lab.standins.gate import Gate
from lab.standins.guard import Guard, dummy_token
from lab.standins.journal import Journal
from lab.standins.server import POSTURES, Standin

TOKEN_VARIABLES: Final = {
    "github": "GITHUB_MCP_TOKEN",
    "ado": "ADO_MCP_TOKEN",
    "context7": "CONTEXT7_API_KEY",
}
_GRACE_SECONDS: Final = 2  # for replies under way when we are told to stop

# Our choice: a hosted server's front end keeps idle connections for minutes; uvicorn's own
# 5 s would make every long pause of a user a new connection.
_IDLE_SECONDS: Final = 75


class _Uvicorn(uvicorn.Server):
    """A server whose signals are its host's business: four of them share one process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(slots=True)
class _Served:
    gate: Gate
    standin: Standin
    server: _Uvicorn
    listener: socket.socket


def _listen() -> socket.socket:
    # The protocol must be named: asyncio sets TCP_NODELAY only on sockets that say they are
    # TCP, and without it the body waits 40 ms for the client to acknowledge the head.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    return listener


def _open(label: str, options: Options, folder: Path) -> _Served:
    posture = POSTURES[label]
    listener = _listen()
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    guard = Guard(label, dummy_token(label), origin, posture.path)
    standin = Standin(posture, guard, sessions=options.sessions)
    gate = Gate(
        label=label,
        app=standin.manager.asgi_app,
        guard=guard,
        fates=Fates(label, options),
        journal=Journal(folder / f"{label}.jsonl"),
        has_get_stream=standin.has_sessions,
    )
    config = uvicorn.Config(
        gate,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=_IDLE_SECONDS,
        server_header=False,
    )
    return _Served(gate, standin, _Uvicorn(config), listener)


def _announcement(served: Mapping[str, _Served]) -> dict[str, Any]:
    guards = {label: one.gate.guard for label, one in served.items()}
    return {
        "pid": os.getpid(),
        "urls": {f"{n.upper()}_MCP_URL": g.origin + g.path for n, g in guards.items()},
        "tokens": {variable: guards[label].token for label, variable in TOKEN_VARIABLES.items()},
        "env": {"ADO_ORG": ado_answers.ORGANIZATION, "ADO_PROJECT": ado_answers.PROJECT},
    }


async def host(run_dir: Path, options: Options) -> None:
    """Serve until SIGTERM or SIGINT; writes run_dir/standins and one line on stdout."""
    folder = run_dir / "standins"
    folder.mkdir(parents=True, exist_ok=True)
    served = {label: _open(label, options, folder) for label in LABELS}
    told_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_stop.set)
    async with AsyncExitStack() as stack:
        for one in served.values():
            await stack.enter_async_context(one.standin.manager.run())
        flushes = [asyncio.create_task(o.gate.journal.flush_for_ever()) for o in served.values()]
        serving = [
            asyncio.create_task(one.server.serve(sockets=[one.listener])) for one in served.values()
        ]
        while not all(one.server.started for one in served.values()):
            await asyncio.sleep(0.01)
        # What the start left would be walked by every full collection: 50 ms, for all clients.
        gc.collect()
        gc.freeze()
        print(json.dumps(_announcement(served)), flush=True)
        await told_to_stop.wait()
        for one in served.values():
            one.server.should_exit = True
        await asyncio.gather(*serving)
        for flush in flushes:
            flush.cancel()
        await asyncio.gather(*flushes, return_exceptions=True)
    for one in served.values():
        one.gate.journal.flush()
    counts = {label: one.gate.sessions.counts() for label, one in served.items()}
    (folder / "sessions.json").write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
