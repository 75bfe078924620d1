"""`MCPUserBase`: one virtual user is one faithful MCP client.

The life of a user: `initialize`, `notifications/initialized`, `tools/list`, many `tools/call`,
DELETE. A subclass says where its server is and what its tasks do; everything else, the wire, the
clock and the count, is here.

`_perform` is the straight line that every exchange takes, and `_record` the only place in the
project that fires Locust's request event. What was attempted is recorded exactly once, whatever
came back; the clock runs from just before the request is written (a connection that must be
opened first counts, as an agent waits for it) to the read that completed our reply.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import time
from functools import cached_property
from time import perf_counter
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import gevent
from gevent import GreenletExit
from locust import FastHttpUser, User

import _origin
import _roster
from _tally import servers, tallies
from _wire import Wire
from _workload import think_time
from mcp_client import (
    LIST_PAGES_LIMIT,
    NAME,
    VERSION,
    AuthError,
    MCPError,
    ProtocolError,
    Reply,
    Session,
    SessionLost,
    Throttled,
    Timeout,
    Trace,
    answer_body,
    judge_tool_result,
    next_id,
    notification_body,
    request_body,
)

__all__ = ["MCPUserBase", "StatelessMCPUser", "servers", "tallies"]

logger = logging.getLogger(__name__)

Result = Dict[str, Any]
Judge = Callable[[Result], None]

CLOSING_TIMEOUT_S = 2.0  # for DELETE and `cancelled`: an end must not wait for a dead server
ANSWER_TIMEOUT_S = 10.0  # for our answer to a request of the server's
BACKOFF_LIMIT = 16.0  # times the long pause, between two attempts to initialize


class MCPUserBase(FastHttpUser):
    """A user of one MCP server over Streamable HTTP (2025-03-26, 2025-06-18, 2025-11-25).

    Set `host`, `mcp_path` and `server_label`, and write tasks that call `_call`. Times are in
    seconds. `self.client` still is Locust's fast HTTP client, for a user's own HTTP calls; it is
    made when first used.
    """

    abstract = True

    mcp_path = "/mcp"
    protocol_version = "2025-06-18"
    server_label = "mcp"
    auth_headers: ClassVar[Mapping[str, str]] = {}
    needs: ClassVar[Sequence[str]] = ()
    requires_session = True
    client_info: ClassVar[Mapping[str, str]] = {"name": NAME, "version": VERSION}
    insecure = False
    network_timeout: float = 30.0
    connection_timeout: float = 10.0
    env: Mapping[str, str] = os.environ

    _names: ClassVar[Dict[Tuple[str, str], str]] = {}
    _listed: ClassVar[Dict[str, List[Dict[str, Any]]]] = {}
    _unlisted: ClassVar[Set[Tuple[str, str]]] = set()
    _ordinals: ClassVar[Any] = itertools.count(1)

    def __init__(self, environment: Any) -> None:
        # Not FastHttpUser's: its client costs memory and, over TLS, one SSL context per user.
        User.__init__(self, environment)
        origin = _origin.shared(self.host or "", self.insecure, self.connection_timeout)
        self._ordinal = next(self._ordinals)
        self._session = Session(
            origin.target(self.mcp_path), origin.authority, self.protocol_version
        )
        self._wire = Wire(origin, origin.url + self.mcp_path, self._session)
        self._url = self._wire.url.partition("?")[0]
        self._has_context = type(self).context is not User.context
        self._think = think_time()
        worker = getattr(environment.runner, "worker_index", 0)
        self._random = random.Random(f"{self.server_label}-{worker}-{self._ordinal}")
        self.tools: List[Dict[str, Any]] = []

    @cached_property
    def client(self) -> Any:
        kept = dict(self.__dict__)
        FastHttpUser.__init__(self, self.environment)
        made = self.__dict__["client"]
        self.__dict__.update(kept)  # the constructor resets the state of a running user
        return made

    # ---- what a subclass uses, or may override

    @property
    def session_id(self) -> Optional[str]:
        """The id that the server gave, or None: no session, or none yet."""
        return self._session.session_id

    def _extra_headers(self) -> Dict[str, str]:
        """Headers of this user's own, asked before each request and off the clock."""
        return dict(self.auth_headers)

    def _token_rejected(self) -> None:
        """A 401: get a new token where one can be had. With a static one there is none."""

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
        name: Optional[str] = None,
        expect: Any = None,
    ) -> Optional[Result]:
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

    def _initialize(self) -> Optional[MCPError]:
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
        tools: List[Dict[str, Any]] = []
        seen: Set[str] = set()
        params: Optional[Dict[str, str]] = None
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

    # ---- one exchange

    def _jsonrpc(
        self,
        method: str,
        params: Any = None,
        *,
        name: Optional[str] = None,
        judge: Optional[Judge] = None,
    ) -> Optional[Result]:
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

    def _notify(self, method: str, params: Any = None, timeout: Optional[float] = None) -> None:
        body = notification_body(method, params)
        reply = Reply(None, in_session=self.session_id is not None)
        self._perform(method, "POST", body, reply, None, timeout)

    def _perform(
        self,
        what: str,
        verb: str,
        body: Any,
        reply: Reply,
        judge: Optional[Judge],
        timeout: Optional[float] = None,
    ) -> Tuple[Optional[Result], Optional[MCPError]]:
        """One attempt at one exchange, recorded once: (result, None) or (None, failure).

        `body` is bytes, or (method, params) of a request that has yet to be encoded.
        """
        trace = Trace()
        trace.planned = perf_counter()
        result: Optional[Result] = None
        failure: Optional[MCPError] = None
        try:
            if isinstance(body, tuple):
                body = request_body(reply.request_id or 0, *body)
            headers = self._extra_headers()
            self._wire.carry(verb, body, headers, reply, trace, timeout or self.network_timeout)
            if verb == "DELETE" and reply.status in (404, 405):
                tallies[self.server_label, f"DELETE answered {reply.status}"] += 1
            else:
                result = reply.result()
                if judge is not None:
                    judge(result)
        except MCPError as error:
            failure, result = error, None
        except Exception as error:  # noqa: BLE001 - no sample is lost, not by a fault of our own
            logger.exception("%s:%s: a fault of the harness or the class", self.server_label, what)
            failure, result = MCPError(f"harness error, {type(error).__name__}"), None
        except BaseException:
            tallies[self.server_label, "cut at the end"] += 1
            raise
        if trace.killed and isinstance(failure, Timeout):
            tallies[self.server_label, "cut at the end"] += 1
            raise GreenletExit
        self._record(what, verb, reply, trace, failure)
        if trace.killed:
            raise GreenletExit
        if failure is not None:
            self._react(failure, what, reply.request_id)
        return result, failure

    def _record(
        self, what: str, verb: str, reply: Reply, trace: Trace, failure: Optional[MCPError]
    ) -> None:
        label = self.server_label
        name = self._names.get((label, what))
        if name is None:
            name = self._names[label, what] = f"{label}:{what}"
        if reply.notifications:
            tallies[label, "notification received"] += reply.notifications
        if reply.hops:
            tallies[label, "redirect followed"] += reply.hops
        trace.request_id = reply.request_id
        trace.kind = reply.kind
        trace.status = reply.status
        trace.user_class = type(self).__name__
        trace.session = self._ordinal
        began = trace.started or trace.planned
        self.environment.events.request.fire(
            request_type=verb,
            name=name,
            response_time=((trace.replied or perf_counter()) - began) * 1000.0,
            response_length=reply.size,
            response=None,
            context={**self.context(), "mcp": trace} if self._has_context else {"mcp": trace},
            exception=failure,
            start_time=trace.at or time.time(),
            url=self._url,
        )

    def _react(self, failure: MCPError, what: str, request_id: Optional[int]) -> None:
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

    # ---- what the server asks of us

    def _answer_later(self, request: Dict[str, Any]) -> None:
        """Answer a request of the server's on a connection of its own, while we read on."""
        gevent.spawn(self._answer, request)

    def _answer(self, request: Dict[str, Any]) -> None:
        body, what = answer_body(request)
        reply = Reply(None)
        try:
            headers = self._extra_headers()
            self._wire.carry("POST", body, headers, reply, Trace(), ANSWER_TIMEOUT_S)
            reply.result()
        except MCPError as error:
            logger.debug("%s: answer to the server: %s", self.server_label, error)
            what = "answer to the server failed"
        tallies[self.server_label, what] += 1


class StatelessMCPUser(MCPUserBase):
    """A user of a server that promises no session. One that is given all the same is kept."""

    abstract = True
    requires_session = False


_roster.watch(MCPUserBase)
