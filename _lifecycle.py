"""The life of a user, from its first word with the server to its last.

Handshake era: `initialize`, `notifications/initialized`, `tools/list`, calls, DELETE. Stateless
era: `server/discover`, `tools/list`, calls. What a client makes of sessions and lists differs from
client to client and decides a server's load, so it is a matter of class attributes here.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from gevent import GreenletExit
from gevent.lock import RLock

import _roster
from _envelope import HeaderAnnotationError, client_meta, mirrors_of, routing_headers
from _exchange import Exchanges, Judge, Result
from _jsonrpc import next_id, notification_body, request_body
from _probe import UNSUPPORTED_VERSION, judge_discovery
from _revisions import AUTO, NEWEST_ENVELOPE, Dealer, Era, Revision, revision_to_offer
from _tally import servers, tallies
from _trace import Trace
from mcp_client import LIST_PAGES_LIMIT, MCPError, ProtocolError, Reply, Throttled

logger = logging.getLogger(__name__)

CLOSING_TIMEOUT_S = 2.0  # for DELETE and `cancelled`: an end must not wait for a dead server
BACKOFF_LIMIT = 16.0  # times the long pause, between two attempts to initialize


class Lifecycle(Exchanges):
    """A user that opens its session, keeps it, and closes it."""

    abstract = True

    requires_session = True
    protocol_versions: ClassVar[Mapping[str, float]] = {}
    """Revision: weight. Users are dealt among them, where a class is to compare the eras."""
    discovers = True
    """Does a stateless client ask `server/discover` before its first call?"""

    _dealers: ClassVar[dict[type, Dealer]] = {}
    _decided: ClassVar[dict[tuple[str, str], Revision]] = {}
    _deciding: ClassVar[dict[tuple[str, str], Any]] = {}
    _asked: ClassVar[Counter[tuple[str, str]]] = Counter()
    _listed: ClassVar[dict[tuple[str, str], tuple[list[dict[str, Any]], frozenset[Any]]]] = {}

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.tools: list[dict[str, Any]] = []
        self._mirrors: dict[str, Any] = {}
        self._tool_names: frozenset[Any] = frozenset()
        self._tools_fresh_until = 0.0
        self._wanted = _roster.pinned_revision() or self.protocol_version
        if self.protocol_versions and not _roster.pinned_revision():
            if type(self) not in self._dealers:
                worker = getattr(environment.runner, "worker_index", 0)
                self._dealers[type(self)] = Dealer(self.protocol_versions, worker)
            self._wanted = self._dealers[type(self)].deal()

    def on_start(self) -> None:
        _roster.spread_out()
        self._establish()
        self._tools_list()

    def on_stop(self) -> None:
        try:
            _roster.leave_in_turn()
            self._terminate_session()
        finally:
            self._wire.close()

    def stop(self, force: bool = False) -> bool:
        """Stop this user; with a stop-timeout Locust waits for the ends of all by itself.

        Waiting here too would keep a greenlet per user: 90 MB at 10,000.
        """
        if not force and self.environment.stop_timeout and _roster.is_resting(self):
            self._group.killone(self._greenlet, block=False)
            return True
        return bool(super().stop(force))

    # ---- before the first call

    def _establish(self) -> None:
        """Start to speak, until it succeeds: no user vanishes from a run, none loops tightly."""
        backoff = 1.0
        while True:
            failure = self._open_session()
            if self._session.revision is not None:
                break
            pause = self._random.uniform(self._think.turn_min, self._think.turn_max) * backoff
            if isinstance(failure, Throttled) and _roster.honours_retry_after():
                pause = max(pause, failure.retry_after)
            backoff = min(backoff * 2.0, BACKOFF_LIMIT)
            _roster.rest(self, pause)
        if not self._session.stateless:
            self._notify_initialized()

    def _open_session(self) -> MCPError | None:
        revision = self._revision()
        if revision is None:
            return None
        if revision.era is Era.HANDSHAKE:
            failure = self._initialize(revision)
            if self._wanted == AUTO and getattr(failure, "code", None) == UNSUPPORTED_VERSION:
                self._decided.pop((type(self).server_label, self._url), None)  # another era now
            return failure
        self._session.stand_alone(revision, self.client_info, self._capabilities())
        if self.discovers and self._discover() is None:
            self._session.forget()
        return None

    def _initialize(self, revision: Revision) -> MCPError | None:
        """Open a session, adopting the id that is given, if any; return the failure, or None."""
        session = self._session
        session.forget()
        request_id = next_id()
        reply = session.reply_to(request_id, self._answer_later)

        def adopt(result: Result) -> None:
            session.adopt(result, reply.headers)
            self._remember(result.get("serverInfo"))
            if self.requires_session and session.session_id is None:
                raise ProtocolError("no session id")

        params = {
            "protocolVersion": revision.name,
            "capabilities": self._capabilities(),
            "clientInfo": dict(self.client_info),
        }
        body = request_body(request_id, "initialize", params)
        _, failure = self._perform("initialize", "POST", body, reply, adopt)
        return failure

    def _notify_initialized(self) -> None:
        self._notify("notifications/initialized")

    def _discover(self) -> Result | None:
        result = self._jsonrpc("server/discover")
        if result is not None:
            meta = result.get("_meta")
            meta = meta if isinstance(meta, dict) else {}
            self._remember(meta.get("io.modelcontextprotocol/serverInfo"))
        return result

    def _remember(self, server_info: Any) -> None:
        servers[self.server_label] = {**self._session.describe(server_info), "url": self._url}

    # ---- which era

    def _revision(self) -> Revision | None:
        """Return the revision to speak; None where the server could not be asked."""
        if self._wanted != AUTO:
            return revision_to_offer(self._wanted)
        key = (type(self).server_label, self._url)  # not a caller's own: one server, one era
        if key not in self._decided:
            asked = self._asked[key]
            with self._deciding.setdefault(key, RLock()):
                if key not in self._decided and self._asked[key] == asked:
                    try:
                        self._probe(key)
                    finally:
                        self._asked[key] += 1  # who waited meanwhile shares what came of it
        return self._decided.get(key)

    def _probe(self, key: tuple[str, str]) -> None:
        """Ask once for all users which era the server speaks. No sample: no agent's load."""
        meta = client_meta(NEWEST_ENVELOPE.name, self.client_info, self._capabilities())
        self._session.stand_alone(NEWEST_ENVELOPE, self.client_info, self._capabilities())
        request_id = next_id()
        reply = self._session.reply_to(request_id)
        trace = Trace()
        try:
            body = request_body(request_id, "server/discover", {"_meta": meta})
            routing = routing_headers("server/discover", None)
            headers = self._extra_headers()
            self._wire.carry("POST", body, headers, reply, trace, self.network_timeout, routing)
        except Exception as error:
            verdict = judge_discovery(0, None)
            why = error if isinstance(error, MCPError) else type(error).__name__
            logger.warning("%s: probing the era: %s", self.server_label, why)
        else:
            verdict = judge_discovery(reply.status, reply.document())
            if verdict.revision is None:
                logger.warning("%s: probing the era: %s", self.server_label, verdict.why)
            if reply.status == 401:
                self._ask_for_another_token()
        self._session.forget()
        tallies[self.server_label, "era probed"] += 1
        if verdict.revision is not None:
            self._decided[key] = verdict.revision
            tallies[self.server_label, f"era decided: {verdict.revision.name}"] += 1
            logger.info("%s: speaks %s (%s)", self.server_label, verdict.revision.name, verdict.why)
        if trace.killed:
            raise GreenletExit

    # ---- what the server offers

    def _tools_list(self) -> None:
        """List the tools, and drop those whose header annotations no client may obey."""
        asked_at = time.monotonic()
        tools = self._pages("tools/list", "tools")
        if tools is None:
            return
        # One list for all users of a class: a server's 100 schemas are not kept 10,000 times.
        key = (self.server_label, self._session.revision.name if self._session.revision else "")
        if key not in self._listed or self._listed[key][0] != tools:
            self._listed[key] = (tools, _names_of(tools))
        self.tools, self._tool_names = self._listed[key]
        self._tools_fresh_until = asked_at + self._ttl_s
        if self._session.stateless:
            self._mirrors, self.tools = self._obeyable(self.tools)

    def _obeyable(self, tools: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        mirrors: dict[str, Any] = {}
        kept = []
        for tool in tools:
            try:
                mirrors[str(tool.get("name"))] = mirrors_of(tool)
            except HeaderAnnotationError as error:
                _roster.warn_once(
                    self.server_label,
                    f"the tool {tool.get('name')!r} is dropped, its x-mcp-header is {error}",
                )
            else:
                kept.append(tool)
        return {name: found for name, found in mirrors.items() if found}, kept

    def _pages(self, method: str, member: str) -> list[dict[str, Any]] | None:
        """Return the objects of a list, page by page until there is no next or one comes again.

        None where a page failed. `ttlMs` of the first page is kept (server/utilities/caching).
        """
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        params: dict[str, str] | None = None
        self._ttl_s = 0.0
        for _ in range(LIST_PAGES_LIMIT):
            page = self._jsonrpc(method, params)
            if page is None:
                return None
            ttl = page.get("ttlMs")
            if not seen and isinstance(ttl, (int, float)) and ttl > 0:
                self._ttl_s = ttl / 1000.0
            listed = page.get(member)
            found += (
                [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
            )
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
            params = {"cursor": cursor}
        return found

    _ttl_s = 0.0

    # ---- after the last call

    def _terminate_session(self) -> None:
        """DELETE the session, if there is one."""
        if self.session_id is not None:
            reply = self._session.reply_to(None)
            self._perform("DELETE", "DELETE", b"", reply, None, CLOSING_TIMEOUT_S)
        self._session.forget()

    # ---- messages

    @property
    def session_id(self) -> str | None:
        """The id that the server gave, or None: no session, or none yet."""
        return self._session.session_id

    def _envelope(
        self, method: str, params: Mapping[str, Any], reply: Reply
    ) -> tuple[tuple[str, dict[str, Any]], tuple[tuple[str, str], ...]]:
        raise NotImplementedError

    def _jsonrpc(
        self,
        method: str,
        params: Any = None,
        *,
        name: str | None = None,
        judge: Judge | None = None,
    ) -> Result | None:
        raise NotImplementedError

    def _notify(self, method: str, params: Any = None, timeout: float | None = None) -> None:
        body = notification_body(method, params)
        self._perform(method, "POST", body, self._session.reply_to(None), None, timeout)


def _names_of(tools: list[dict[str, Any]]) -> frozenset[str]:
    return frozenset(name for name in (t.get("name") for t in tools) if isinstance(name, str))
