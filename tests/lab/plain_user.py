"""A locustfile of plain Locust users that send nothing: each task is one request event.

Every eleventh request fails, with a text that holds the variable PLANTED_TOKEN where it is set,
and so does the event that a user fires when it is stopped.
"""

from __future__ import annotations

from locust import User, constant, task

import os
import time
from typing import Any


class PlainUser(User):
    wait_time = constant(0.02)

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.sent = 0

    def _send(self, name: str, fails: bool) -> None:
        failure = ValueError(f"refused, {os.environ.get('PLANTED_TOKEN', '')}")
        self.environment.events.request.fire(
            request_type="GET",
            name=name,
            response_time=1.25,
            response_length=3,
            exception=failure if fails else None,
            context={},
            start_time=time.time(),
            url="http://user:pass@127.0.0.1/path?key=value",
            response=None,
        )

    @task
    def ask(self) -> None:
        self.sent += 1
        self._send("plain: a,b", fails=self.sent % 11 == 0)

    def on_stop(self) -> None:
        self._send("plain:bye", fails=True)
