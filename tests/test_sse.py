"""The parser of event streams. Rules: html.spec.whatwg.org, "Interpreting an event stream"."""

from __future__ import annotations

import pytest

from _sse import Event, SSEParser
from tests.pieces import body, names, ways

A, B = ("message", b"a"), ("message", b"b")
STREAMS = {
    "one event": (b"data: a\n\n", [A]),
    "two events": (b"data: a\n\ndata: b\n\n", [A, B]),
    "crlf": (b"event: x\r\ndata: a\r\n\r\n", [("x", b"a")]),
    "cr": (b"event: x\rdata: a\r\r", [("x", b"a")]),
    "crlf, then a blank line of lf": (b"data: a\r\n\ndata: b\r\n\n", [A, B]),
    "lf, then a blank line of cr": (b"data: a\n\rdata: b\n\r", [A, B]),
    "lf, then a blank line of crlf": (b"data: a\n\r\ndata: b\n\r\n", [A, B]),
    "lines joined by lf": (b"data: a\ndata: b\n\n", [("message", b"a\nb")]),
    "blank lines of data": (b"data: a\ndata:\ndata: b\n\n", [("message", b"a\n\nb")]),
    "one blank dropped, not two": (b"data:  a\n\n", [("message", b" a")]),
    "no blank": (b"data:a\n\n", [A]),
    "a colon in the value": (b"data: a:b: c\n\n", [("message", b"a:b: c")]),
    "comments": (b": x\n\n:\n\ndata: a\n: y\n\n", [A]),
    "no data": (b"event: ping\n\ndata: a\n\n", [A]),
    "empty data": (b"data: \n\ndata\n\ndata: a\n\n", [A]),
    "a name for one event only": (b"event: x\ndata: b\n\ndata: a\n\n", [("x", b"b"), A]),
    "unknown fields": (b"foo: 1\ndatax: 2\nbar\ndata: a\n\n", [A]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [A]),
    "one byte order mark, not two": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [B]),
    "no line end but CR and LF": (
        b"data: a\xe2\x80\xa8b\x0bc\x0cd\x1ce\xc2\x85f\n\n",
        [("message", b"a\xe2\x80\xa8b\x0bc\x0cd\x1ce\xc2\x85f")],
    ),
}


def _parsed(pieces: list[bytes]) -> list[Event]:
    parser = SSEParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("name", STREAMS)
def test_events_are_the_same_however_the_stream_is_cut(name: str) -> None:
    stream, expected = STREAMS[name]

    assert {how: _parsed(pieces) for how, pieces in ways(stream)} == {
        how: expected for how, _ in ways(stream)
    }


def _in_one_piece_and_by_a_thousand(stream: bytes) -> tuple[list[Event], list[Event]]:
    small = [stream[start : start + 1000] for start in range(0, len(stream), 1000)]
    return _parsed([stream]), _parsed(small)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("head", [b"", b"event: message"])
def test_among_thousands_of_plain_events_none_is_taken_for_another(
    name: str, end: bytes, head: bytes
) -> None:
    plain = (head + end if head else b"") + b"data: " + b"p" * 90 + end * 2
    odd = STREAMS[name][0].replace(b"\xef\xbb\xbf", b"")
    stream = plain * 40 + odd + plain * 40 + odd + plain

    whole, pieces = _in_one_piece_and_by_a_thousand(stream)

    assert whole == pieces
    assert whole.count(("message", b"p" * 90)) == 81


def test_a_line_between_plain_events_keeps_its_meaning() -> None:
    plain = b"data: " + b"p" * 90 + b"\n\n"
    stream = plain * 40 + b"id: 7\ndata: a\n\n" + plain * 40

    parser = SSEParser()
    events = parser.feed(stream)

    assert (len(events), parser.last_id) == (81, "7")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_large_event_is_the_same_however_it_is_cut(end: bytes) -> None:
    stream = b"data: " + b"x" * 20_000 + end + b"data: " + b"y" * 20_000 + end * 2

    whole = ("message", b"x" * 20_000 + b"\n" + b"y" * 20_000)

    for cut in range(1, len(stream), 997):
        assert _parsed([stream[:cut], stream[cut:]]) == [whole]


@pytest.mark.parametrize("name", names("*/*.sse"))
def test_events_of_real_bodies_are_the_same_however_they_are_cut(name: str) -> None:
    whole = SSEParser()
    expected = [*whole.feed(body(name)), *whole.end()]
    assert expected or "polling" in name

    for how, pieces in ways(body(name)):
        parser = SSEParser()
        found = [event for piece in pieces for event in parser.feed(piece)]
        assert ([*found, *parser.end()], parser.last_id, parser.retry_ms, how) == (
            expected,
            whole.last_id,
            whole.retry_ms,
            how,
        )


def test_an_empty_piece_between_a_cr_and_its_lf_changes_nothing() -> None:
    assert _parsed([b"data: a\r", b"", b"\n\r", b"", b"\n"]) == [A]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"])
def test_a_last_event_whose_blank_line_never_came_is_returned_at_the_end(end: bytes) -> None:
    """Our choice: the standard discards it, but its JSON is whole, and servers do send it."""
    for _, pieces in ways(b"data: b\n\nevent: x\ndata: a" + end):
        parser = SSEParser()
        for piece in pieces:
            parser.feed(piece)

        assert parser.end() == [("x", b"a")]


def test_a_stream_that_ends_between_events_has_no_event_left() -> None:
    parser = SSEParser()
    parser.feed(b"data: a\n\n: bye\n\n")

    assert parser.end() == []


def test_a_byte_order_mark_is_dropped_from_a_stream_without_any_line_end() -> None:
    parser = SSEParser()

    assert parser.feed(b"\xef\xbb\xbfdata: a") == []
    assert parser.end() == [A]


def test_an_id_without_data_is_kept_and_so_is_that_of_an_event() -> None:
    for _, pieces in ways(b"id: 1\ndata:\n\nid: 2\n\nid\0x: 3\nid: 4\0\n\n"):
        parser = SSEParser()
        for piece in pieces:
            parser.feed(piece)

        assert parser.last_id == "2"


def test_an_empty_id_forgets_the_last_one() -> None:
    parser = SSEParser()
    parser.feed(b"id: 1\n\nid\n\n")

    assert parser.last_id == ""


@pytest.mark.parametrize("rest", [b"", b"\n", b"\ndata: ha"])
def test_the_id_of_an_event_that_was_cut_is_no_place_to_go_on_from(rest: bytes) -> None:
    """A server asked to go on after it would never send that event again."""
    parser = SSEParser()
    parser.feed(b"id: 1\ndata:\n\nid: 2" + rest)
    parser.end()

    assert parser.last_id == "1"


def test_an_id_goes_back_in_a_header_byte_for_byte() -> None:
    parser = SSEParser()
    parser.feed("id: é→1\n\n".encode())

    assert parser.last_id.encode("latin-1") == "é→1".encode()


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (b"retry: 1500", 1500),
        (b"retry:0", 0),
        (b"retry: -1", None),
        (b"retry: 1.5", None),
        (b"retry: soon", None),
        (b"retry", None),
        ("retry: \u0661".encode(), None),
        (b"retry: " + b"9" * 5000, None),
    ],
)
def test_only_ascii_digits_are_a_reconnection_time(field: bytes, expected: int | None) -> None:
    parser = SSEParser()
    parser.feed(field + b"\n\n")

    assert parser.retry_ms == expected


def test_bytes_that_are_no_utf_8_do_not_stop_the_parser() -> None:
    assert _parsed([b"event: \xff\ndata: \xe9\n\n"]) == [("�", b"\xe9")]


def test_a_long_line_in_many_pieces_is_joined_once() -> None:
    piece = b"x" * 65536
    parser = SSEParser()
    parser.feed(b"data: ")
    for _ in range(80):
        assert parser.feed(piece) == []

    assert parser.feed(b"\n\n") == [("message", piece * 80)]
