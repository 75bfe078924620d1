"""The null server answers as its record says, in every mode, framing and era."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import null_server
from lab.cli import CannotRun
from lab.null_server import NullServer, ports_waiting, read_record

pytestmark = pytest.mark.usefixtures("null_server_can_be_built")
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class Client:
    """A plain HTTP connection that shows what came, byte by byte."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        self._file = self.socket.makefile("rb")

    def send(self, message: object, verb: str = "POST", headers: str = "") -> None:
        body = json.dumps(message) if message is not None else ""
        head = f"{verb} /mcp HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        self.socket.sendall((head + body).encode())

    def head(self) -> tuple[int, dict[str, str]]:
        status = int(self._file.readline().split()[1])
        headers = {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers

    def reply(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = self.head()
        return status, headers, self._file.read(int(headers["content-length"]))

    def chunk(self) -> bytes:
        return self._file.read(int(self._file.readline(), 16))

    def close(self) -> None:
        self._file.close()
        self.socket.close()


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    opened: list[Client] = []
    yield opened
    for each in opened:
        each.close()


def connect(server: NullServer, clients: list[Client]) -> Client:
    clients.append(Client(server.port))
    return clients[-1]


def call(request_id: object, tool: str = "echo") -> dict[str, object]:
    params = {"name": tool, "arguments": {"id": 7, "method": "no", "message": 'a "quoted\\" id'}}
    return {"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": request_id}


def events(body: bytes) -> list[dict[str, object]]:
    return [json.loads(line[6:]) for line in body.split(b"\r\n") if line.startswith(b"data: ")]


@pytest.mark.parametrize("request_id", [1, 1 << 52, "a", "with:colon"])
def test_an_answer_has_the_id_of_its_request_wherever_that_stands(
    request_id: object, clients: list[Client]
) -> None:
    with NullServer() as server:
        client = connect(server, clients)
        client.send(call(request_id))
        status, headers, body = client.reply()

    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["id"] == request_id
    assert json.loads(body)["result"]["content"] == [{"type": "text", "text": "x" * 200}]


def test_the_handshake_gives_a_session_and_the_revision_that_was_asked_for(
    clients: list[Client],
) -> None:
    with NullServer() as server:
        client = connect(server, clients)
        params = {"protocolVersion": "2025-06-18", "capabilities": {}}
        client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        _, headers, body = client.reply()
        client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        accepted = client.reply()[0]
        client.send(None, "DELETE", f"Mcp-Session-Id: {headers['mcp-session-id']}\r\n")
        ended = client.reply()[0]
        client.send(None, "DELETE")
        without = client.reply()[0]
        client.send(None, "GET")
        stream = client.reply()[0]

    assert json.loads(body)["result"]["protocolVersion"] == "2025-06-18"
    assert (accepted, ended, without, stream) == (202, 200, 405, 405)


def test_a_request_with_an_envelope_is_answered_in_the_stateless_era(clients: list[Client]) -> None:
    with NullServer() as server:
        client = connect(server, clients)
        results = {}
        for method in ("server/discover", "tools/list", "tools/call"):
            params = {"name": "echo", "_meta": ENVELOPE}
            client.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            results[method] = json.loads(client.reply()[2])["result"]
        client.send({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": ENVELOPE}})
        status, _, unknown = client.reply()

    assert {each["resultType"] for each in results.values()} == {"complete"}
    assert results["server/discover"]["supportedVersions"] == ["2026-07-28"]
    assert (status, json.loads(unknown)["error"]["code"]) == (404, -32601)


def test_an_unknown_envelope_is_refused_with_the_revisions_that_are_known(
    clients: list[Client],
) -> None:
    with NullServer() as server:
        client = connect(server, clients)
        meta = {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        client.send(request)
        status, _, body = client.reply()

    assert (status, json.loads(body)["error"]["code"]) == (400, -32022)
    assert json.loads(body)["error"]["data"] == {
        "supported": ["2026-07-28"],
        "requested": "2099-01-01",
    }


def test_an_event_stream_has_its_notifications_before_the_reply(clients: list[Client]) -> None:
    with NullServer("sse", events=3, text=10) as server:
        client = connect(server, clients)
        client.send(call(5))
        _, headers, body = client.reply()

    assert headers["content-type"] == "text/event-stream"
    assert [each.get("method") for each in events(body)] == ["notifications/progress"] * 3 + [None]
    assert events(body)[-1]["id"] == 5


def test_a_stream_that_is_held_open_carries_the_reply_and_does_not_end(
    clients: list[Client],
) -> None:
    with NullServer("open") as server:
        client = connect(server, clients)
        client.send(call(5))
        status, headers = client.head()
        chunk = client.chunk()
        client.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):  # no last chunk, and no end of the connection
            client.socket.recv(1, socket.MSG_PEEK) and client.socket.recv(3, socket.MSG_WAITALL)

    assert (status, headers["transfer-encoding"]) == (200, "chunked")
    assert events(chunk)[-1]["id"] == 5


def test_a_reply_that_is_larger_than_a_socket_takes_arrives_whole(clients: list[Client]) -> None:
    with NullServer("sse", text=5_000_000) as server:
        client = connect(server, clients)
        client.send(call(1))
        client.send(call(2))
        first, second = client.reply()[2], client.reply()[2]

    assert [events(each)[0]["id"] for each in (first, second)] == [1, 2]
    assert len(first) == len(second) > 5_000_000


def test_a_delayed_answer_takes_as_long_as_was_drawn_and_both_are_kept(
    tmp_path: Path, clients: list[Client]
) -> None:
    record = tmp_path / "record.csv"
    with NullServer(delays={"slow": "20", "two": "5,15:0.5"}, record=record) as server:
        callers = [connect(server, clients) for _ in range(40)]
        for number, client in enumerate(callers):
            client.send(call(number, "slow" if number % 2 else "two"))
        replied = [json.loads(client.reply()[2])["id"] for client in callers]
    kept = {int(each.id): each for each in read_record(record)}

    assert replied == sorted(kept) == list(range(40))
    assert {each.drawn_us for number, each in kept.items() if number % 2} == {20_000}
    assert {each.drawn_us for number, each in kept.items() if not number % 2} == {5_000, 15_000}
    assert all(each.took_us >= each.drawn_us for each in kept.values())


def test_a_client_that_goes_away_takes_its_answer_along(
    tmp_path: Path, clients: list[Client]
) -> None:
    record = tmp_path / "record.csv"
    with NullServer(delays={"slow": "30", "later": "60"}, record=record) as server:
        gone = Client(server.port)
        gone.send(call(1, "slow"))
        gone.close()
        stays = connect(server, clients)
        stays.send(call(2, "later"))
        answered = json.loads(stays.reply()[2])["id"]

    assert answered == 2
    assert [each.id for each in read_record(record)] == ["2"]


def test_the_same_seed_draws_the_same_delays(tmp_path: Path, clients: list[Client]) -> None:
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        record = tmp_path / name
        with NullServer(delays={"two": "0,1:0.5"}, seed=seed, record=record) as server:
            client = connect(server, clients)
            for number in range(30):
                client.send(call(number, "two"))
                client.reply()
        drawn.append([each.drawn_us for each in read_record(record)])

    assert drawn[0] == drawn[1] != drawn[2]


def test_requests_are_counted_and_the_question_is_none(clients: list[Client]) -> None:
    with NullServer() as server:
        before = server.stats()
        client = connect(server, clients)
        for number in range(5):
            client.send(call(number))
            client.reply()
        after = server.stats()

        assert server.reply_size() > 200

    assert (before.requests, after.requests) == (0, 5)
    assert after.cpu_s >= before.cpu_s


def test_ports_in_time_wait_are_those_of_the_server_only(tmp_path: Path) -> None:
    head = "  sl  local_address rem_address   st\n"
    rows = [
        "   0: 0100007F:C350 0100007F:1F90 06 x",  # a client of 8080 that waits
        "   1: 0100007F:1F90 0100007F:C351 06 x",  # the server's own side that waits
        "   2: 0100007F:C352 0100007F:1F90 01 x",  # established
        "   3: 0100007F:C353 0100007F:1F91 06 x",  # another server's
    ]
    table = tmp_path / "tcp"
    table.write_text(head + "\n".join(rows) + "\n", encoding="ascii")

    assert ports_waiting(8080, [str(table), str(tmp_path / "tcp6")]) == 2


def test_a_machine_without_a_compiler_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    null_server.program.cache_clear()
    try:
        with pytest.raises(CannotRun, match="C compiler"):
            null_server.program()
    finally:
        null_server.program.cache_clear()


def test_the_program_compiles_without_a_warning(tmp_path: Path) -> None:
    source = null_server.SOURCE.read_text(encoding="utf-8")
    target = tmp_path / "null_server"
    line = f"cc -O2 -Wall -Wextra -Werror -o {target} {null_server.SOURCE}"

    assert os.waitstatus_to_exitcode(os.system(line)) == 0  # noqa: S605 - our own words
    assert re.findall(r"\bstrcat\b|\bgets\b", source) == []
