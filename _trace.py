"""The instants of one exchange, in the order in which they come."""

from __future__ import annotations


class Trace:
    """The instants of one exchange, as `time.perf_counter()` seconds; 0.0 for what never came.

    `planned` is when the task asked, `started` just before the request is written or a connection
    opened for it, `replied` the read that completed the reply, `ended` the end of its stream.
    """

    planned = started = connected = secured = sent = 0.0
    headers = first_event = replied = ended = 0.0
    at = 0.0
    """`started` as epoch seconds."""
    status = 0
    kind = ""
    request_id: int | None = None
    sent_bytes = received_bytes = 0
    revision = ""
    user_class = ""
    session = 0
    killed = False
    """The user was killed meanwhile, and has yet to obey."""
