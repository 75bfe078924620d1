"""What a `Reply` makes of the bytes of one answer, whatever their pieces."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, Callable

import pytest

from _failures import MCPError
from _reply import ERROR_BODY_LIMIT, Reply
from tests.pieces import body, names, ways

TEXT = "café 日本語 🦀 end"
OK = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
JSON = {b"content-type": b"application/json"}
SSE = {b"content-type": b"text/event-stream"}


def _read(
    pieces: list[bytes],
    headers: dict[bytes, bytes],
    status: int = 200,
    whole: bool = True,
    **options: Any,
) -> Reply:
    reply = Reply(7, **options)
    reply.begin(status, headers)
    for piece in pieces:
        if reply.done:
            break
        reply.feed(piece)
    if not reply.done:
        reply.finish(whole)
    return reply


def _text_of(reply: Reply) -> str:
    return str(reply.result()["content"][0]["text"])


def _failure(reply: Reply) -> str:
    with pytest.raises(MCPError) as caught:
        reply.result()
    return f"{type(caught.value).__name__}: {caught.value}"


def _json(message: Any, **more: Any) -> Reply:
    return _read([json.dumps(message).encode()], JSON, **more)


def _sse(*messages: Any, **more: Any) -> Reply:
    stream = "".join(f"data: {json.dumps(message)}\n\n" for message in messages)
    return _read([stream.encode()], SSE, **more)


ANSWERS = [
    name
    for name in names("*/*.*")
    if not any(word in name for word in ("polling", "cut_inside", "input_required"))
]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_reply_cut_at_any_byte_is_read_the_same(name: str) -> None:
    headers = SSE if name.endswith(".sse") else JSON
    for how, pieces in ways(body(name)):
        reply = _read(pieces, headers, batches="2025-03-26" in name)

        assert (how, _text_of(reply)) == (how, TEXT)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "GZIP"])
def test_a_compressed_reply_cut_at_any_byte_is_read_the_same(name: str, encoding: str) -> None:
    plain = body(name)
    packed = zlib.compress(plain) if encoding == "deflate" else gzip.compress(plain)
    kind = SSE if name.endswith(".sse") else JSON
    headers = {**kind, b"content-encoding": encoding.encode()}
    for _, pieces in ways(packed):
        reply = _read(pieces, headers, batches="2025-03-26" in name)

        assert _text_of(reply) == TEXT
        assert reply.size <= len(plain)


def test_a_raw_deflate_stream_is_one_clear_failure() -> None:
    """Known gap: some servers send RFC 1951 without the zlib header of RFC 9110, 8.4.1.2."""
    compressor = zlib.compressobj(wbits=-15)
    packed = compressor.compress(body("2025-06-18/plain.json")) + compressor.flush()
    for _, pieces in ways(packed):
        reply = _read(pieces, {**JSON, b"content-encoding": b"deflate"})

        assert _failure(reply) == "ProtocolError: bad gzip body"


@pytest.mark.parametrize(
    "media_type",
    [b"application/json; charset=utf-8", b"Application/JSON", b" application/json ;x=y"],
)
def test_a_media_type_is_compared_without_its_parameters_and_case(media_type: bytes) -> None:
    reply = _read([json.dumps(OK).encode()], {b"content-type": media_type})

    assert reply.result() == OK["result"]


def test_the_reply_is_decided_at_our_message_and_not_at_the_end_of_the_stream() -> None:
    reply = Reply(7)
    reply.begin(200, SSE)

    assert not reply.feed(b": open\n\n")
    assert not reply.done
    assert reply.feed(f"data: {json.dumps(OK)}\n\n".encode())
    assert reply.done
    assert not reply.feed(b"data: more\n\n")
    assert reply.result() == OK["result"]


def test_json_is_decided_as_soon_as_it_is_whole_in_chunks_that_never_end() -> None:
    whole = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"a": {"b": {}}, "c": {}}}).encode()
    for how, pieces in ways(whole):
        reply = Reply(7)
        reply.begin(200, JSON)
        for piece in pieces:
            assert not reply.done
            reply.feed(piece)

        assert (how, reply.done) == (how, True)


def test_json_with_a_length_is_not_tried_before_its_end() -> None:
    reply = Reply(7)
    reply.begin(200, {**JSON, b"content-length": b"99"})
    reply.feed(json.dumps(OK).encode())

    assert not reply.done


def test_the_first_of_two_answers_with_our_id_counts() -> None:
    second = {**OK, "result": {"content": ["second"]}}

    assert _sse(OK, second).result() == OK["result"]


def test_an_id_inside_the_params_of_a_notification_is_no_answer() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": OK}
    reply = _sse(note, OK)

    assert reply.result() == OK["result"]
    assert reply.notifications == 1


NOTICE = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"id": 7, "error": 1}}


@pytest.mark.parametrize(
    "order", [("jsonrpc", "method", "params"), ("params", "method", "jsonrpc")]
)
@pytest.mark.parametrize("blanks", [None, (",", ":")])
def test_a_reply_after_thousands_of_notifications_is_found_and_all_are_counted(
    order: tuple[str, ...], blanks: tuple[str, str] | None
) -> None:
    notice = json.dumps({key: NOTICE[key] for key in order}, separators=blanks)
    stream = f"data: {notice}\n\n" * 3000 + f"data: {json.dumps(OK)}\n\n"

    for size in (100, 2500, 70_000, len(stream)):
        pieces = [stream[i : i + size].encode() for i in range(0, len(stream), size)]
        reply = _read(pieces, SSE)

        assert (reply.result(), reply.notifications) == ({"content": []}, 3000)


def test_what_is_broken_among_thousands_of_notifications_fails() -> None:
    notice = f"data: {json.dumps(NOTICE)}\n\n"
    stream = notice * 1000 + 'data: {"result":\n\n' + notice * 1000 + f"data: {json.dumps(OK)}\n\n"

    assert _failure(_read([stream.encode()], SSE)) == "ProtocolError: invalid JSON"


def test_requests_of_the_server_are_handed_over_while_the_stream_goes_on() -> None:
    asked: list[dict[str, Any]] = []
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    reply = _sse(ping, OK, on_request=asked.append)

    assert asked == [ping]
    assert reply.result() == OK["result"]


def test_notifications_are_handed_over_where_somebody_listens() -> None:
    heard: list[dict[str, Any]] = []
    note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    reply = _sse(note, OK, on_notification=heard.append)

    assert heard == [note]
    assert reply.notifications == 1


WRONG: dict[str, tuple[Callable[[], Reply], str]] = {
    "another id": (lambda: _json({**OK, "id": 0}), "ProtocolError: no response for this id"),
    "another id in a stream": (
        lambda: _sse({**OK, "id": 0}),
        "ProtocolError: no response for this id",
    ),
    "true is no id": (lambda: _json({**OK, "id": True}), "ProtocolError: no response for this id"),
    "a null id with a result": (
        lambda: _json({**OK, "id": None}),
        "ProtocolError: no response for this id",
    ),
    "only a notification": (
        lambda: _json({"jsonrpc": "2.0", "method": "notifications/progress"}),
        "ProtocolError: no response for this id",
    ),
    "only a request": (
        lambda: _json({"jsonrpc": "2.0", "id": 7, "method": "ping"}),
        "ProtocolError: no response for this id",
    ),
    "neither result nor error": (
        lambda: _json({"jsonrpc": "2.0", "id": 7}),
        "ProtocolError: neither result nor error",
    ),
    "a list for a result": (
        lambda: _json({**OK, "result": []}),
        "ProtocolError: result is not an object",
    ),
    "null": (lambda: _json(None), "ProtocolError: reply is not an object"),
    "a string in a stream": (lambda: _sse("hello"), "ProtocolError: reply is not an object"),
    "a batch": (lambda: _json([OK]), "ProtocolError: unexpected JSON-RPC batch"),
    "a batch in a stream": (lambda: _sse([OK]), "ProtocolError: unexpected JSON-RPC batch"),
    "a batch without us": (
        lambda: _json([{**OK, "id": 1}], batches=True),
        "ProtocolError: no response for this id",
    ),
    "an empty body": (lambda: _read([], JSON), "ProtocolError: empty body"),
    "a body of blanks": (lambda: _read([b" \r\n"], JSON), "ProtocolError: empty body"),
    "an empty stream": (
        lambda: _read([], SSE),
        "ProtocolError: stream ended before the reply",
    ),
    "json cut with its length mended": (
        lambda: _read([b'{"jsonrpc": "2.0", "id": 7, "res'], JSON),
        "ProtocolError: invalid JSON",
    ),
    "json cut by the end of the connection": (
        lambda: _read([b'{"jsonrpc": "2.0", "id": 7, "res'], JSON, whole=False),
        "ProtocolError: incomplete body",
    ),
    "json cut by the end of the connection, though it looks whole": (
        lambda: _read([json.dumps(OK).encode()], {**JSON, b"content-length": b"9999"}, whole=False),
        "ProtocolError: incomplete body",
    ),
    "no utf-8": (
        lambda: _read([json.dumps(OK).encode()[:-1] + b',"x":"\xe9"}'], JSON),
        "ProtocolError: invalid JSON",
    ),
    "NaN": (
        lambda: _read([b'{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}'], JSON),
        "ProtocolError: invalid JSON",
    ),
    "nested without end": (
        lambda: _read([b'{"id":7,"result":' + b"[" * 100_000], JSON),
        "ProtocolError: invalid JSON",
    ),
    "garbage in a message event": (
        lambda: _read([b"data: <html>\n\n"], SSE),
        "ProtocolError: invalid JSON",
    ),
    "html": (
        lambda: _read([b"<p>sign in"], {b"content-type": b"text/html; charset=utf-8"}),
        "ProtocolError: unexpected content-type text/html",
    ),
    "no content type": (lambda: _read([b"{}"], {}), "ProtocolError: missing content-type"),
    "202": (lambda: _read([], {}, 202), "ProtocolError: HTTP 202 to a request"),
    "204": (lambda: _read([], {}, 204), "ProtocolError: HTTP 204 to a request"),
    "another encoding": (
        lambda: _read([b"x"], {**JSON, b"content-encoding": b"zstd"}),
        "ProtocolError: unsupported content-encoding zstd",
    ),
    "bad gzip": (
        lambda: _read([b"no gzip"], {**JSON, b"content-encoding": b"gzip"}),
        "ProtocolError: bad gzip body",
    ),
    "gzip cut short": (
        lambda: _read(
            [gzip.compress(json.dumps(OK).encode())[:40]], {**JSON, b"content-encoding": b"gzip"}
        ),
        "ProtocolError: bad gzip body",
    ),
    "an error": (
        lambda: _json({"id": 7, "error": {"code": -32602, "message": "no"}}),
        "RPCError: JSON-RPC error -32602",
    ),
    "an error of nobody": (
        lambda: _json({"id": None, "error": {"code": -32600}}),
        "RPCError: JSON-RPC error -32600",
    ),
    "an error of nobody in a stream": (
        lambda: _sse({"id": "server-error", "error": {"code": -32600}}),
        "RPCError: JSON-RPC error -32600",
    ),
    "an error without any id": (
        lambda: _json({"error": {"code": -32700}}),
        "RPCError: JSON-RPC error -32700",
    ),
    "an error of another request": (
        lambda: _sse({"id": 5, "error": {"code": -32700}}),
        "ProtocolError: no response for this id",
    ),
    "an error that is a string": (
        lambda: _json({"id": 7, "error": "boom " * 9999}),
        "RPCError: JSON-RPC error without a code",
    ),
    "an error whose code is a string": (
        lambda: _json({"id": 7, "error": {"code": "E1"}}),
        "RPCError: JSON-RPC error without a code",
    ),
    "an event named error": (
        lambda: _read([b'event: error\ndata: {"id":7,"error":{"code":-32603}}\n\n'], SSE),
        "RPCError: JSON-RPC error -32603",
    ),
    "400 with a code": (
        lambda: _json({"id": "server-error", "error": {"code": -32600}}, status=400),
        "HTTPStatusError: HTTP 400, JSON-RPC error -32600",
    ),
    "400 with a code in a stream": (
        lambda: _sse({"id": None, "error": {"code": -32600}}, status=400),
        "HTTPStatusError: HTTP 400, JSON-RPC error -32600",
    ),
    "404 outside a session": (lambda: _json({}, status=404), "HTTPStatusError: HTTP 404"),
    "500 in html": (
        lambda: _read([b"<p>boom"], {b"content-type": b"text/html"}, 500),
        "HTTPStatusError: HTTP 500",
    ),
    "500 in bad gzip": (
        lambda: _read([b"boom"], {**JSON, b"content-encoding": b"gzip"}, 500),
        "HTTPStatusError: HTTP 500",
    ),
    "500 in an unknown encoding": (
        lambda: _read([b"boom"], {**JSON, b"content-encoding": b"br"}, 500),
        "HTTPStatusError: HTTP 500",
    ),
    "500 cut short": (
        lambda: _read([b"{"], JSON, 500, whole=False),
        "HTTPStatusError: HTTP 500",
    ),
    "301": (lambda: _read([], {b"location": b"/x"}, 301), "HTTPStatusError: HTTP 301"),
    "304": (lambda: _read([], {}, 304), "HTTPStatusError: HTTP 304"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_reply_has_one_short_name(what: str) -> None:
    make, expected = WRONG[what]

    assert _failure(make()) == expected


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, {"id": "", "error": {"code": -32001, "message": "Session not found"}}),
        (404, {}),
        (400, {"id": None, "error": {"code": -32000, "message": "No valid session ID provided"}}),
        (410, {"error": {"code": 1, "message": "session expired"}}),
        (503, {"error": "session unknown on this instance"}),
    ],
)
@pytest.mark.parametrize("form", [_json, _sse])
def test_a_lost_session_is_told_from_other_refusals(
    form: Callable[..., Reply], status: int, message: dict[str, Any]
) -> None:
    """Forms of the Python SDK 1.12 to 2.3, the TypeScript SDK, and a replica that knows it not."""
    assert _failure(form(message, status=status, in_session=True)) == "SessionLost: session lost"
    assert "SessionLost" not in _failure(form(message, status=status))


def test_a_lost_session_may_be_said_under_http_200() -> None:
    message = {"id": 7, "error": {"code": -32600, "message": "Session not found"}}

    assert _failure(_json(message, in_session=True)) == "SessionLost: session lost"


def test_a_400_that_does_not_speak_of_sessions_is_no_lost_session() -> None:
    message = {"id": 7, "error": {"code": -32602, "message": "bad arguments"}}

    assert _failure(_json(message, status=400, in_session=True)) == (
        "HTTPStatusError: HTTP 400, JSON-RPC error -32602"
    )


def test_an_endless_error_body_is_read_to_a_limit_only() -> None:
    reply = Reply(7)
    reply.begin(500, {b"content-type": b"text/html"})
    fed = 0
    while not reply.done:
        reply.feed(b"x" * 4096)
        fed += 4096

    assert fed <= ERROR_BODY_LIMIT + 4096
    assert _failure(reply) == "HTTPStatusError: HTTP 500"


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_message_that_only_wants_a_status_looks_at_no_body(status: int) -> None:
    reply = Reply(None)
    reply.begin(status, {b"content-type": b"text/plain", b"content-encoding": b"zstd"})

    assert reply.done
    assert reply.result() == {}


def test_a_stream_that_ended_early_with_an_event_id_can_be_resumed() -> None:
    reply = _read([body("2025-11-25/polling.sse")], SSE)

    assert reply.awaits_resumption
    assert (reply.last_event_id, reply.retry_ms) == ("e1", 500)
    reply.resume()
    assert not reply.awaits_resumption
    reply.begin(200, SSE)
    reply.feed(f"data: {json.dumps(OK)}\n\n".encode())
    assert reply.result() == OK["result"]


def test_a_stream_cut_inside_an_event_is_resumed_before_that_event() -> None:
    for _, pieces in ways(body("2025-11-25/cut_inside_an_event.sse")):
        reply = _read(pieces, SSE, whole=False)

        assert reply.awaits_resumption
        assert reply.last_event_id == "e1"


def test_a_resumed_stream_that_says_nothing_keeps_the_last_id() -> None:
    reply = _read([body("2025-11-25/polling.sse")], SSE)
    reply.resume()
    reply.begin(200, SSE)
    reply.finish(True)

    assert reply.awaits_resumption
    assert (reply.last_event_id, reply.retry_ms) == ("e1", 500)


NOT_RESUMED = {
    "no id was seen": lambda: _read([b"data:\n\n"], SSE),
    "our answer came": lambda: _read([f"id: 1\ndata: {json.dumps(OK)}\n\n".encode()], SSE),
    "the stream goes on": lambda: _read([b"id: 1\ndata: {garbage}\n\ndata: x\n\n"], SSE),
    "another's answer came": lambda: _read([b'id: 1\ndata: {"id":5,"result":{}}\n\n'], SSE),
    "it was an error": lambda: _read([b"id: 1\ndata:\n\n"], SSE, 500),
    "it was no stream": lambda: _read([b"{}"], JSON),
    "a batch came": lambda: _read([b"id: 1\ndata:\n\ndata: []\n\ndata: x\n\n"], SSE),
}


@pytest.mark.parametrize("why", NOT_RESUMED)
def test_nothing_is_resumed_where(why: str) -> None:
    assert not NOT_RESUMED[why]().awaits_resumption


def test_a_server_that_will_not_resume_leaves_the_failure_as_it_was() -> None:
    reply = _read([body("2025-11-25/polling.sse")], SSE)
    failure = reply.failure
    reply.resume()
    reply.begin(405, {})
    reply.finish(True)
    reply.give_up(failure)

    assert not reply.awaits_resumption
    assert _failure(reply) == "ProtocolError: stream ended before the reply"


def test_a_redirected_reply_forgets_the_first_answer() -> None:
    reply = Reply(7)
    reply.begin(307, {b"location": b"/x"})
    assert reply.done
    reply.reset()

    reply.begin(200, JSON)
    reply.feed(json.dumps(OK).encode())
    reply.finish(True)
    assert reply.result() == OK["result"]


def test_the_size_is_that_of_the_decoded_body() -> None:
    plain = json.dumps({**OK, "result": {"text": "x" * 10_000}}).encode()
    reply = _read([gzip.compress(plain)], {**JSON, b"content-encoding": b"gzip"})

    assert reply.result()
    assert reply.size == len(plain)


@pytest.mark.parametrize("headers", [JSON, SSE], ids=["json", "sse"])
def test_a_reply_of_five_megabytes_in_small_pieces_is_read(headers: dict[bytes, bytes]) -> None:
    text = "x" * 5_000_000
    whole = json.dumps({**OK, "result": {"text": text}}).encode()
    if headers is SSE:
        whole = b"data: " + whole + b"\n\n"
    reply = _read([whole[n : n + 1400] for n in range(0, len(whole), 1400)], headers)

    assert reply.result()["text"] == text
    assert reply.size == len(whole)


def test_a_probe_reads_an_error_document_whatever_its_status() -> None:
    message = {"id": None, "error": {"code": -32022, "data": {"supported": ["2026-07-28"]}}}

    assert _json(message, status=400).document() == message
    assert _sse(message, status=400).document() == message
    assert _read([b"<p>no"], {b"content-type": b"text/html"}, 404).document() is None
