"""`MCPUserBase`: one virtual user is one faithful MCP client.

A subclass says where its server is and what its tasks do. The wire, the clock and the count are
`_exchange`'s, the session `_lifecycle`'s; here is how a request is made, and what follows from it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gevent

import _legacy
import _roster
from _envelope import routing_headers
from _exchange import Judge, Result
from _jsonrpc import next_id
from _lifecycle import CLOSING_TIMEOUT_S
from _primitives import Primitives
from _tally import servers, tallies
from mcp_client import (
    AuthError,
    HTTPStatusError,
    MCPError,
    ProtocolError,
    Reply,
    RPCError,
    SessionLost,
    Throttled,
    Timeout,
    judge_tool_result,
)

__all__ = ["MCPUserBase", "StatelessMCPUser", "servers", "tallies"]

ROUNDS_LIMIT = 10  # of input that a server may ask for within one call, as the Python client's
HEADER_MISMATCH = -32020
_TRACES = random.SystemRandom().getrandbits(64)  # no other run's, in the server's tracing


class MCPUserBase(Primitives):
    """A user of one MCP server over Streamable HTTP, in every revision of `_revisions`.

    Set `host`, `mcp_path` and `server_label`, and write tasks that call `_call`. Times are in
    seconds. `self.client` still is Locust's fast HTTP client, for a user's own HTTP calls; it is
    made when first used.
    """

    abstract = True

    needs: ClassVar[Sequence[str]] = ()
    progress_tokens = False
    """Ask for progress on each call (it turns JSON replies of some servers into streams)."""
    traceparents = False
    """Send a W3C traceparent with each call, to find a slow one in the server's traces: the second
    half of its trace id is the request id in hex."""

    # ---- what a subclass uses, or may override

    def pick(self, lines: Sequence[str]) -> str:
        """Return one of the lines, by this user's seeded generator."""
        return self._random.choice(lines)

    def wait_time(self) -> float:
        """Return the pause to the next task: mostly short within a turn, at times a long one."""
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
        """Call a tool; return its result object, or None where the call failed.

        The failure has then been recorded, and nothing is raised for a bad reply. `name` stands
        for the tool in the statistics. `expect` is a predicate on the result.
        """
        if self._tool_names and tool not in self._tool_names:
            _roster.warn_once(
                self.server_label,
                f"the server does not list the tool {tool!r}; it is called all the same",
            )
        if self._has_habits:
            self._before_call()
        return self._call_now(tool, arguments, name, expect)

    def _call_now(
        self, tool: str, arguments: Mapping[str, Any], name: str | None = None, expect: Any = None
    ) -> Result | None:
        return self._jsonrpc(
            "tools/call",
            {"name": tool, "arguments": arguments},
            name=name or tool,
            judge=lambda result: judge_tool_result(result, expect),
        )

    def _call_all(self, calls: Sequence[Mapping[str, Any]]) -> list[Result | None]:
        """Call several tools of one turn at once, in this one session, each its own sample.

        Each of `calls` holds the arguments of `_call` by name: tool, arguments, name, expect.
        Returns their results in the same order, None for those that failed.
        """
        if self._has_habits:
            self._before_call()
        greenlets = [gevent.spawn(self._call_now, **call) for call in calls]
        try:
            gevent.joinall(greenlets)
        except BaseException:
            gevent.killall(greenlets, block=False)
            gevent.joinall(greenlets, timeout=CLOSING_TIMEOUT_S + 0.5)
            raise
        for greenlet in greenlets:
            if greenlet.exception is not None:  # a listener's StopUser, or a fault of our own
                raise greenlet.exception
        return [g.value if isinstance(g.value, dict) else None for g in greenlets]

    def _bursts(self) -> bool:
        """Is this turn one in which the agent calls several tools at once (MCP_BURST_PROB)?"""
        return self._random.random() < _roster.burst_probability()

    # ---- requests

    def _jsonrpc(
        self,
        method: str,
        params: Any = None,
        *,
        name: str | None = None,
        judge: Judge | None = None,
    ) -> Result | None:
        """Send a request and return its result, or None where it failed.

        `name` is added to the method in the statistics, as tools/call adds the tool's. A server
        of the stateless era may ask for input, round after round; each is a sample of its own.
        """
        what = f"{method}:{name}" if name else method
        session = self._session
        if not session.stateless:
            request_id = next_id()
            meta = self._meta(request_id)
            if meta:
                params = {**(params or {}), "_meta": meta}
            reply = session.reply_to(request_id, self._answer_later)
            result, _ = self._perform(what, "POST", (method, params), reply, judge)
            return result
        return self._stand_alone(method, params or {}, what, judge)

    def _stand_alone(
        self, method: str, params: Mapping[str, Any], what: str, judge: Judge | None
    ) -> Result | None:
        asked: dict[str, Any] = {}
        mismatches = itertools.count()
        for round_left in reversed(range(ROUNDS_LIMIT)):
            reply = self._session.reply_to(next_id())
            body, routing = self._envelope(method, {**params, **asked}, reply)
            judged = _judge_stateless(judge, round_left > 0)
            result, failure = self._perform(what, "POST", body, reply, judged, None, routing)
            if method == "tools/call" and _is_header_mismatch(failure) and next(mismatches) == 0:
                self._tools_list()
                continue
            if result is None or result.get("resultType") != "input_required":
                return result
            asked = self._input_for(result)
            tallies[self.server_label, "input asked for"] += 1
        return None

    def _envelope(
        self, method: str, params: Mapping[str, Any], reply: Reply
    ) -> tuple[tuple[str, dict[str, Any]], tuple[tuple[str, str], ...]]:
        """Return (method, params) and the routing headers of a request that stands alone."""
        request_id = reply.request_id or 0
        meta = {**self._session.meta, **self._meta(request_id)}
        mirrors = self._mirrors.get(str(params.get("name"))) if self._mirrors else ()
        routing = routing_headers(method, params, mirrors or ())
        return (method, {**params, "_meta": meta}), routing

    def _input_for(self, result: Result) -> dict[str, Any]:
        """Return what a server that answered `input_required` is to be sent with the next round."""
        asked: dict[str, Any] = {}
        requests = result.get("inputRequests")
        if isinstance(requests, dict) and requests:
            asked["inputResponses"] = {
                key: self._result_for(str(one.get("method")), one.get("params")) or {}
                for key, one in requests.items()
                if isinstance(one, dict)
            }
        if "requestState" in result:
            asked["requestState"] = result["requestState"]
        return asked

    def _meta(self, request_id: int) -> dict[str, Any]:
        """Return what a request says beside its arguments: progress token, traceparent."""
        meta: dict[str, Any] = {}
        if self.progress_tokens:
            meta["progressToken"] = request_id
        if self.traceparents:
            meta["traceparent"] = f"00-{_TRACES:016x}{request_id:016x}-{request_id:016x}-01"
        return meta

    def _react(
        self, failure: MCPError, what: str, request_id: int | None, session_id: str | None
    ) -> None:
        """Do what a client does after a failure; nothing of it is on the failed call's clock.

        `session_id` is that of the failed exchange: of parallel calls that lose a session, one
        opens another.
        """
        if isinstance(failure, AuthError) and failure.rejected:
            self._ask_for_another_token()
        if what == "initialize":
            _legacy.look(self, failure)
            return
        if request_id is None:
            return
        if isinstance(failure, SessionLost):
            if session_id == self.session_id:
                self._establish()
        elif isinstance(failure, Throttled) and _roster.honours_retry_after():
            _roster.rest(self, failure.retry_after)
        elif isinstance(failure, Timeout) and failure.sent and not self._session.stateless:
            cancelled = {"requestId": request_id, "reason": "timeout"}
            self._notify("notifications/cancelled", cancelled, CLOSING_TIMEOUT_S)


def _judge_stateless(judge: Judge | None, may_ask: bool) -> Judge:
    def judged(result: Result) -> None:
        kind = result.get("resultType", "complete")
        if kind == "complete":
            if judge is not None:
                judge(result)
        elif kind != "input_required":
            raise ProtocolError("unknown result type")
        elif not may_ask:
            raise ProtocolError("too many rounds of input")

    return judged


def _is_header_mismatch(failure: MCPError | None) -> bool:
    return isinstance(failure, (HTTPStatusError, RPCError)) and failure.code == HEADER_MISMATCH


class StatelessMCPUser(MCPUserBase):
    """A user of a server that promises no session. One that is given all the same is kept."""

    abstract = True
    requires_session = False


_roster.watch(MCPUserBase)
