"""The report's last sections: what stands beside the requests, and how to read them."""

from __future__ import annotations

from html import escape

from lab import eras, tokens
from lab.digest import Digest
from lab.markup import grid, section
from lab.units import ms

_SAID = ("name", "version", "protocolVersion", "session", "url")


def annex(digest: Digest) -> str:
    """Return the sections, without those that have nothing to say."""
    return "".join(
        (
            _handshakes(digest),
            _eras(digest),
            _tokens(digest),
            _counted(digest),
            _servers(digest),
            _method(digest),
        )
    )


def _handshakes(digest: Digest) -> str:
    if not digest.handshakes:
        return ""
    rows = [
        (
            *(h.server, f"{h.sessions:,}"),
            *(ms(v) for v in (h.initialize_ms, h.initialized_ms, h.list_ms, h.total_ms)),
            f"{h.share_of_waiting:.1f} %",
            "not known" if h.share_of_time is None else f"{h.share_of_time:.2f} %",
        )
        for h in digest.handshakes
    ]
    heads = ("server", "sessions", "initialize", "initialized", "tools/list", "together")
    return section(
        "The handshake's price",
        "What an agent waits before its first call, on average and in milliseconds, and what part"
        " that is of all it waited for, and of its session's whole time.",
        grid([*heads, "of waiting", "of the session"], rows),
    )


def _eras(digest: Digest) -> str:
    if not digest.eras:
        return ""
    parts = []
    for era in digest.eras:
        said = "".join(f"<p>{escape(each)}</p>" for each in era.said)
        rows = [eras.cells(each) for each in era.spoken]
        parts.append(f"<h3>{escape(era.server)}</h3>{said}{grid(eras.HEADINGS, rows)}")
    lead = (
        "One server, and users that spoke different revisions to it. Opening is the handshake, paid"
        " once a session, or server/discover; the stateless envelope is paid with each call. Calls"
        " are compared tool by tool, at 99 % confidence. Times are in milliseconds, bytes those of"
        " a call on the wire, headers included."
    )
    return section("Revisions compared", lead, *parts)


def _tokens(digest: Digest) -> str:
    if not digest.tokens:
        return ""
    lead = (
        "What was asked for tokens is no sample, and in none of the figures above. Milliseconds; a"
        " renewal is all of its steps together."
    )
    rows = [each.cells() for each in digest.tokens]
    return section("Tokens", lead, grid(tokens.HEADINGS, rows, words=2))


def _counted(digest: Digest) -> str:
    rows = [(s, what, f"{n:,}") for (s, what), n in sorted(digest.run.tallies.items())]
    if not rows:
        return ""
    lead = "What happened beside the requests and is in none of the figures above."
    return section("Counted, no sample", lead, grid(("server", "what", "count"), rows, words=2))


def _servers(digest: Digest) -> str:
    spoken = {era.server: ", ".join(each.revision for each in era.spoken) for era in digest.eras}
    rows = []
    for label, said in sorted(digest.run.servers.items()):
        if label in spoken:  # one user's revision would stand for all
            said = {**said, "protocolVersion": spoken[label]}
        rows.append((label, *(str(said.get(key, "")) for key in _SAID)))
    if not rows:
        return ""
    heads = ("label", "name", "version", "MCP revision", "session", "address")
    return section("Servers", "As they named themselves.", grid(heads, rows, words=6))


def _method(digest: Digest) -> str:
    facts = [p.facts for p in digest.run.processes.values() if p.facts]
    made = sorted({f"Python {f.get('python')}, Locust {f.get('locust')}" for f in facts})
    return section(
        "How to read this",
        "The clock runs from just before a request is written, a connection that must be opened"
        " included, to the read that completed its reply. Percentiles are interpolated between raw"
        " samples; Azure Load Testing sketches them and may differ by a few percent. A light load"
        " is a baseline, not a ceiling."
        + (f" {len(facts)} process{'es' * (len(facts) > 1)}: {'; '.join(made)}." if made else ""),
    )
