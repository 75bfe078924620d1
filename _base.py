"""`MCPUserBase`: one virtual user is one faithful MCP client.

The life of a user: `initialize`, `notifications/initialized`, `tools/list`, many `tools/call`,
DELETE. A subclass says where its server is and what its tasks do; the wire, the clock and the
count are `_exchange`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import _roster
from _exchange import Exchanges, Judge, Result
from _jsonrpc import notification_body, request_body
from _tally import servers, tallies
from mcp_client import (
    LIST_PAGES_LIMIT,
    AuthError,
    MCPError,
    ProtocolError,
    Reply,
    SessionLost,
    Throttled,
    Timeout,
    judge_tool_result,
    next_id,
)

__all__ = ["MCPUserBase", "StatelessMCPUser", "servers", "tallies"]

logger = logging.getLogger(__name__)

CLOSING_TIMEOUT_S = 2.0  # for DELETE and `cancelled`: an end must not wait for a dead server
BACKOFF_LIMIT = 16.0  # times the long pause, between two attempts to initialize


class MCPUserBase(Exchanges):
    """A user of one MCP server over Streamable HTTP (2025-03-26, 2025-06-18, 2025-11-25).

    Set `host`, `mcp_path` and `server_label`, and write tasks that call `_call`. Times are in
    seconds. `self.client` still is Locust's fast HTTP client, for a user's own HTTP calls; it is
    made when first used.
    """

    abstract = True

    needs: ClassVar[Sequence[str]] = ()
    requires_session = True

    _listed: ClassVar[dict[str, list[dict[str, Any]]]] = {}
    _unlisted: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.tools: list[dict[str, Any]] = []

    # ---- what a subclass uses, or may override

    @property
    def session_id(self) -> str | None:
        """The id that the server gave, or None: no session, or none yet."""
        return self._session.session_id

    def pick(self, lines: Sequence[str]) -> str:
        """One of the lines, by this user's seeded generator."""
        return self._random.choice(lines)

    def wait_time(self) -> float:
        """Seconds to the next task: mostly the short pause within a turn, at times the long one."""
        think = self._think
        if self._random.random() < think.turn_prob:
            return self._random.uniform(think.turn_min, think.turn_max)
        return self._random.uniform(think.intra_min, think.intra_max)

    def _call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        name: str | None = None,
        expect: Any = None,
    ) -> Result | None:
        """tools/call. Returns the result object, or None where the call failed: the failure has
        then been recorded, and nothing is raised for a bad reply.

        `name` stands for the tool in the statistics. `expect` is a predicate on the result.
        """
        if self.tools and (self.server_label, tool) not in self._unlisted:
            self._warn_if_unlisted(tool)
        return self._jsonrpc(
            "tools/call",
            {"name": tool, "arguments": arguments},
            name=name or tool,
            judge=lambda result: judge_tool_result(result, expect),
        )

    # ---- the life of a user

    def on_start(self) -> None:
        _roster.spread_out()
        self._establish()
        self._tools_list()

    def on_stop(self) -> None:
        try:
            self._terminate_session()
        finally:
            self._wire.close()

    def _establish(self) -> None:
        """Initialize until it succeeds: no user vanishes from a run, and none loops tightly."""
        backoff = 1.0
        while True:
            failure = self._initialize()
            if self._session.revision is not None:
                break
            pause = self._random.uniform(self._think.turn_min, self._think.turn_max) * backoff
            if isinstance(failure, Throttled) and _roster.honours_retry_after():
                pause = max(pause, failure.retry_after)
            backoff = min(backoff * 2.0, BACKOFF_LIMIT)
            _roster.rest(self, pause)
        self._notify_initialized()

    def _initialize(self) -> MCPError | None:
        """Open a session, adopting the id that is given, if any; the failure, or None."""
        session = self._session
        session.forget()
        request_id = next_id()
        reply = Reply(request_id, on_request=self._answer_later)

        def adopt(result: Result) -> None:
            session.adopt(result, reply.headers)
            servers[self.server_label] = {**session.describe(result), "url": self._url}
            if self.requires_session and session.session_id is None:
                raise ProtocolError("no session id")

        body = request_body(request_id, "initialize", session.initialize_params(self.client_info))
        _, failure = self._perform("initialize", "POST", body, reply, adopt)
        return failure

    def _notify_initialized(self) -> None:
        self._notify("notifications/initialized")

    def _tools_list(self) -> None:
        """List the tools, page by page until there is no next or a cursor comes again."""
        tools: list[dict[str, Any]] = []
        seen: set[str] = set()
        params: dict[str, str] | None = None
        for _ in range(LIST_PAGES_LIMIT):
            page = self._jsonrpc("tools/list", params)
            if page is None:
                return
            listed = page.get("tools")
            tools += [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
            params = {"cursor": cursor}
        # One list for all users of a class: a server's 100 schemas are not kept 10,000 times.
        if self._listed.get(self.server_label) != tools:
            self._listed[self.server_label] = tools
        self.tools = self._listed[self.server_label]

    def _warn_if_unlisted(self, tool: str) -> None:
        if not any(listed.get("name") == tool for listed in self.tools):
            self._unlisted.add((self.server_label, tool))
            logger.warning(
                "%s: the server does not list the tool %r; it is called all the same",
                self.server_label,
                tool,
            )

    def _terminate_session(self) -> None:
        """DELETE the session, if there is one."""
        if self.session_id is not None:
            self._perform("DELETE", "DELETE", b"", Reply(None), None, CLOSING_TIMEOUT_S)
            self._session.forget()

    # ---- requests and notifications

    def _jsonrpc(
        self,
        method: str,
        params: Any = None,
        *,
        name: str | None = None,
        judge: Judge | None = None,
    ) -> Result | None:
        """Send a request and return its result, or None where it failed.

        `name` is added to the method in the statistics, as tools/call adds the tool's.
        """
        session = self._session
        request_id = next_id()
        reply = Reply(
            request_id,
            in_session=session.session_id is not None,
            batches=session.batches,
            on_request=self._answer_later,
        )
        what = f"{method}:{name}" if name else method
        result, _ = self._perform(what, "POST", (method, params), reply, judge)
        return result

    def _notify(self, method: str, params: Any = None, timeout: float | None = None) -> None:
        body = notification_body(method, params)
        reply = Reply(None, in_session=self.session_id is not None)
        self._perform(method, "POST", body, reply, None, timeout)

    def _react(self, failure: MCPError, what: str, request_id: int | None) -> None:
        """What a client does after a failure; nothing of it is on the failed call's clock."""
        if isinstance(failure, AuthError) and failure.rejected:
            self._token_rejected()
        if request_id is None or what == "initialize":
            return
        if isinstance(failure, SessionLost):
            tallies[self.server_label, "session lost"] += 1
            self._establish()
        elif isinstance(failure, Throttled) and _roster.honours_retry_after():
            _roster.rest(self, failure.retry_after)
        elif isinstance(failure, Timeout):
            cancelled = {"requestId": request_id, "reason": "timeout"}
            self._notify("notifications/cancelled", cancelled, CLOSING_TIMEOUT_S)


class StatelessMCPUser(MCPUserBase):
    """A user of a server that promises no session. One that is given all the same is kept."""

    abstract = True
    requires_session = False


_roster.watch(MCPUserBase)
