"""One exchange with the server: attempted, timed, judged, and recorded once.

`_perform` is the straight line that every exchange takes, and `_record` the only place in the
project that fires Locust's request event. What was attempted is recorded whatever came back; the
clock runs from just before the request is written (a connection that must be opened first counts,
as an agent waits for it) to the read that completed our reply.
"""

from __future__ import annotations

from locust import FastHttpUser, User

import itertools
import logging
import os
import random
import time
import traceback
from collections.abc import Mapping
from functools import cached_property
from time import perf_counter
from typing import Any, Callable, ClassVar

import gevent
from gevent import GreenletExit

import _origin
from _jsonrpc import request_body, response_body
from _tally import tallies
from _wire import Wire
from _workload import think_time
from mcp_client import NAME, VERSION, MCPError, Reply, Session, SessionLost, Timeout, Trace

logger = logging.getLogger(__name__)

Result = dict[str, Any]
Judge = Callable[[Result], None]

ANSWER_TIMEOUT_S = 10.0  # for our answer to a request of the server's
SERVER_REQUESTS = {
    "sampling/createMessage": "_on_sampling",
    "elicitation/create": "_on_elicitation",
    "roots/list": "_on_roots",
}
CAPABILITIES = {"_on_sampling": "sampling", "_on_elicitation": "elicitation", "_on_roots": "roots"}


class Exchanges(FastHttpUser):
    """A user that can exchange messages with one MCP server; its life is `MCPUserBase`'s."""

    abstract = True

    mcp_path = "/mcp"
    protocol_version = "2025-06-18"
    server_label = "mcp"
    auth_headers: ClassVar[Mapping[str, str]] = {}
    client_info: ClassVar[Mapping[str, str]] = {"name": NAME, "version": VERSION}
    insecure = False
    network_timeout: float = 30.0
    connection_timeout: float = 10.0
    env: Mapping[str, str] = os.environ

    _names: ClassVar[dict[tuple[str, str], str]] = {}
    _ordinals: ClassVar[Any] = itertools.count(1)

    def __init__(self, environment: Any) -> None:
        # Not FastHttpUser's: its client costs memory and, over TLS, one SSL context per user.
        User.__init__(self, environment)
        origin = _origin.shared(self.host or "", self.insecure, self.connection_timeout)
        self._ordinal = next(self._ordinals)
        self._session = Session(origin.target(self.mcp_path), origin.authority)
        self._wire = Wire(origin, origin.url + self.mcp_path, self._session)
        self._url = self._wire.url.partition("?")[0]
        self._has_context = type(self).context is not User.context
        self._think = think_time()
        worker = getattr(environment.runner, "worker_index", 0)
        self._random = random.Random(f"{self.server_label}-{worker}-{self._ordinal}")

    @cached_property
    def client(self) -> Any:  # type: ignore[override]
        kept = dict(self.__dict__)
        FastHttpUser.__init__(self, self.environment)
        made = self.__dict__["client"]
        self.__dict__.update(kept)  # the constructor resets the state of a running user
        return made

    # ---- hooks of a subclass

    def _extra_headers(self) -> dict[str, str]:
        """Return this user's own headers; asked before each request, off the clock."""
        return dict(self.auth_headers)

    def _token_rejected(self) -> None:
        """Get a new token after a 401, where one can be had. With a static one there is none."""

    # ---- one exchange

    def _perform(
        self,
        what: str,
        verb: str,
        body: Any,
        reply: Reply,
        judge: Judge | None,
        timeout: float | None = None,
        routing: tuple[tuple[str, str], ...] = (),
    ) -> tuple[Result | None, MCPError | None]:
        """One attempt at one exchange, recorded once: (result, None) or (None, failure).

        `body` is bytes, or (method, params) of a request that has yet to be encoded.
        """
        trace = Trace()
        trace.planned = perf_counter()
        result: Result | None = None
        failure: MCPError | None = None
        session_id = self._session.session_id
        try:
            if isinstance(body, tuple):
                body = request_body(reply.request_id or 0, *body)
            headers = self._extra_headers()
            limit = timeout or self.network_timeout
            self._wire.carry(verb, body, headers, reply, trace, limit, routing)
            if verb == "DELETE" and reply.status in (404, 405):
                tallies[self.server_label, f"DELETE answered {reply.status}"] += 1
            else:
                result = reply.result()
                if judge is not None:
                    judge(result)
        except MCPError as error:
            failure, result = error, None
        except Exception as error:
            self._log_fault(what, error)
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
            self._react(failure, what, reply.request_id, session_id)
        return result, failure

    def _record(
        self, what: str, verb: str, reply: Reply, trace: Trace, failure: MCPError | None
    ) -> None:
        label = self.server_label
        name = self._names.get((label, what))
        if name is None:
            name = self._names[label, what] = f"{label}:{what}"
        if isinstance(failure, SessionLost):
            tallies[label, "session lost"] += 1
        if reply.notifications:
            tallies[label, "notification received"] += reply.notifications
        if reply.hops:
            tallies[label, "redirect followed"] += reply.hops
        if reply.resumptions:
            tallies[label, "stream resumed"] += reply.resumptions
        revision = self._session.revision
        trace.revision = revision.name if revision is not None else ""
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

    def _ask_for_another_token(self) -> None:
        try:
            self._token_rejected()
        except Exception as error:
            self._log_fault("_token_rejected", error)

    def _log_fault(self, what: str, error: Exception) -> None:
        # Where it happened, and not its words: those of a header's fault may hold the token.
        where = "".join(traceback.format_tb(error.__traceback__))
        name = type(error).__name__
        logger.error("%s:%s: a fault of ours: %s\n%s", self.server_label, what, name, where)

    def _react(
        self, failure: MCPError, what: str, request_id: int | None, session_id: str | None
    ) -> None:
        raise NotImplementedError

    # ---- what the server asks of us

    def _answer_later(self, request: dict[str, Any]) -> None:
        """Answer a request of the server's on a connection of its own, while we read on."""
        gevent.spawn(self._answer, request)

    def _answer(self, request: dict[str, Any]) -> None:
        reply = Reply(None)
        try:
            result = self._result_for(str(request.get("method")), request.get("params"))
            if result is None:
                what = "server request refused"
                error = {"code": -32601, "message": "Method not found"}
                body = response_body(request["id"], "error", error)
            else:
                what = f"server {request['method']} answered"
                body = response_body(request["id"], "result", result)
            headers = self._extra_headers()
            self._wire.carry("POST", body, headers, reply, Trace(), ANSWER_TIMEOUT_S)
            reply.result()
        except Exception as error:
            logger.debug("%s: answer to the server: %s", self.server_label, type(error).__name__)
            what = "answer to the server failed"
        tallies[self.server_label, what] += 1

    def _result_for(self, method: str, params: Any) -> dict[str, Any] | None:
        """Return our answer to a request of the server's, or None to refuse it as unknown.

        `ping` is answered with {}; the rest by the hooks that a class overrides. Unanswered, a
        tool call of a server that asks in the middle of it would hang (client/roots: -32601).
        """
        if method == "ping":
            return {}
        hook = SERVER_REQUESTS.get(method)
        return getattr(self, hook)(params or {}) if hook is not None else None

    def _on_sampling(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """sampling/createMessage: return its result, or None to refuse (the default)."""

    def _on_elicitation(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """elicitation/create: return {"action": ..., "content": ...}, or None to refuse."""

    def _on_roots(self, params: dict[str, Any]) -> dict[str, Any] | None:
        """roots/list: return {"roots": [...]}, or None to refuse (the default)."""

    @classmethod
    def _capabilities(cls) -> dict[str, Any]:
        """Return what we say that we can do: what a class has overridden the hook of."""
        return {
            CAPABILITIES[hook]: {}
            for hook in SERVER_REQUESTS.values()
            if getattr(cls, hook) is not getattr(Exchanges, hook)
        }
