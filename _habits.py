"""What clients make of sessions, lists and idle streams: it decides a server's load.

SDK clients and IDEs keep one session per conversation; hosted connectors open one for each call;
agent frameworks list the tools before each run. A class says which client its users are.
"""

from __future__ import annotations

import time
from typing import Any

import _roster
from _lifecycle import Lifecycle
from _listener import Listener

SESSIONS = ("conversation", "task", "call")
LISTINGS = ("once", "task", "ttl")


class Habits(Lifecycle):
    """A user with the habits of one kind of client."""

    abstract = True

    sessions = "conversation"
    """How long one session serves: a "conversation" (the user's life), a "task", or a "call"."""
    lists_tools = "once"
    """When tools/list is asked: "once" a session, before each "task", or by its "ttl"."""
    idle_stream = False
    """Keep a GET stream open beside the calls, as the official SDKs do where there is a session."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self._listener: Listener | None = None
        self._calls_in_session = 0
        self._task_over = False
        for attribute, known in (("sessions", SESSIONS), ("lists_tools", LISTINGS)):
            if getattr(self, attribute) not in known:
                _roster.stop_the_run(
                    f"{type(self).__name__}.{attribute} = {getattr(self, attribute)!r}:"
                    f" use one of {', '.join(known)}"
                )
        self._has_habits = self.sessions != "conversation" or self.lists_tools != "once"
        if self._has_habits:
            self._notice_ends_of_tasks()

    def on_stop(self) -> None:
        self._stop_listening()
        super().on_stop()

    def _establish(self) -> None:
        super()._establish()
        self._calls_in_session = 0
        if self.idle_stream and self.session_id is not None:
            self._listen()

    def _notice_ends_of_tasks(self) -> None:
        wait_time = self.wait_time

        def noticing() -> float:
            self._task_over = True
            return wait_time()

        self.wait_time = noticing  # type: ignore[method-assign]

    def _before_call(self) -> None:
        """Open another session, or list the tools again, where this client would by now."""
        first_of_task, self._task_over = self._task_over, False
        used = self._calls_in_session > 0
        if used and (self.sessions == "call" or (self.sessions == "task" and first_of_task)):
            self._stop_listening()
            self._terminate_session()
            self._establish()
            if self.lists_tools == "once":
                self._tools_list()
        if (self.lists_tools == "task" and first_of_task) or (
            self.lists_tools == "ttl" and time.monotonic() >= self._tools_fresh_until
        ):
            self._tools_list()
        self._calls_in_session += 1

    def _listen(self, **notifications: Any) -> Listener:
        """Open a stream for what the server has to say; it ends with the user.

        `notifications` are those of `subscriptions/listen` (toolsListChanged=True, ...), asked for
        in the stateless era; a session's GET stream carries what the server likes.
        """
        self._stop_listening()
        params = {"notifications": notifications} if self._session.stateless else None
        self._listener = Listener(self, params)
        self._listener.wait_until_open()
        return self._listener

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None
