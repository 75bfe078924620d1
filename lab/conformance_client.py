"""The client under test of the official conformance suite: one real Locust user, without pauses.

The suite starts ``python -m lab.conformance_client URL`` and says by MCP_CONFORMANCE_SCENARIO,
MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT (JSON) what is to be done. Exit code 0
where something was answered: what was to be answered, and how, is the suite's to judge.
"""

from __future__ import annotations

from locust import constant, task
from locust.env import Environment
from locust.exception import StopUser

import json
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from _base import MCPUserBase
from _examples import NoExample, example_of

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
REVISION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
LEGACY_MOCKS = ("json-schema-ref-no-deref",)  # "at 2026-07-28", but its mock speaks the handshake
ECHO = "json_schema_echo"
ELICITING = ("elicitation-sep1034-client-defaults", "sep-2322-client-request-state")


class ConformanceUser(MCPUserBase):
    """Does once what the scenario asks for."""

    abstract = True
    server_label = "conformance"
    requires_session = False
    wait_time = constant(0)
    network_timeout = 20.0

    done: Callable[[], None]

    @task
    def do_the_scenario(self) -> None:
        """Call what the scenario wants called, once."""
        if SCENARIO != "initialize":
            for call in self._calls():
                self._call(call["name"], call.get("arguments") or {})
            self._echo_schemas()
            self._read_the_rest()
        self.done()
        raise StopUser

    def _calls(self) -> list[dict[str, Any]]:
        if CONTEXT.get("toolCalls"):
            return list(CONTEXT["toolCalls"])
        found = []
        for tool in self.tools:
            try:
                arguments = example_of(tool.get("inputSchema") or {"type": "object"})
            except NoExample:
                arguments = {}
            found.append({"name": tool["name"], "arguments": arguments})
        return found

    def _echo_schemas(self) -> None:
        if SCENARIO == "json-schema-2020-12-preservation":
            for tool in self.tools:
                if tool["name"] != ECHO:
                    self._call(ECHO, {"schema": tool["inputSchema"]})

    def _read_the_rest(self) -> None:
        if SCENARIO != "http-standard-headers":
            return
        for resource in self._resources_list() or []:
            self._read_resource(resource["uri"])
        for prompt in self._prompts_list() or []:
            self._get_prompt(prompt["name"], {})


class ElicitingUser(ConformanceUser):
    """Accepts every elicitation with the defaults of its schema."""

    abstract = True
    idle_stream = True

    def _on_elicitation(self, params: dict[str, Any]) -> dict[str, Any]:
        properties = (params.get("requestedSchema") or {}).get("properties") or {}
        content = {
            name: schema["default"]
            for name, schema in properties.items()
            if isinstance(schema, dict) and "default" in schema
        }
        for name in (params.get("requestedSchema") or {}).get("required") or ():
            content.setdefault(name, _example(properties.get(name)))
        return {"action": "accept", "content": content}


def _example(schema: Any) -> Any:
    wrapped = {"type": "object", "properties": {"one": schema or True}, "required": ["one"]}
    try:
        return example_of(wrapped)["one"]
    except NoExample:
        return "example"


def main(url: str) -> int:
    """Run one user against the URL until its scenario is done; return the exit code."""
    parts = urlsplit(url)
    base = ElicitingUser if SCENARIO in ELICITING else ConformanceUser
    members: dict[str, Any] = {
        "abstract": False,
        "host": f"{parts.scheme}://{parts.netloc}",
        "mcp_path": parts.path or "/",
        "protocol_version": "2025-11-25" if SCENARIO in LEGACY_MOCKS else REVISION,
    }
    if SCENARIO.startswith("auth/"):
        members.update(_signing_in(url))
    user_class: Any = type("User", (base,), members)
    environment = Environment(user_classes=[user_class])
    runner = environment.create_local_runner()
    user_class.done = lambda _: runner.greenlet.spawn(runner.quit)
    succeeded: list[str] = []
    failures: list[str] = []

    def note(name: str, exception: object = None, **_: Any) -> None:
        sys.stdout.write(f"{name}: {exception or 'ok'}\n")
        if exception is None:
            succeeded.append(name)
        else:
            failures.append(str(exception))

    environment.events.request.add_listener(note)
    runner.start(1, spawn_rate=1)
    runner.greenlet.join()
    return 1 if not succeeded or any("harness error" in one for one in failures) else 0


def _signing_in(url: str) -> dict[str, Any]:
    from _oauth import ClientCredentials  # what needs it pays for it

    how: dict[str, Any] = {"client_secret": CONTEXT.get("client_secret")}
    if CONTEXT.get("private_key_pem"):
        how = {
            "private_key": CONTEXT["private_key_pem"],
            "algorithm": CONTEXT.get("signing_algorithm", "ES256"),
        }
    source = ClientCredentials(url, client_id=CONTEXT["client_id"], **how)

    def headers(self: Any) -> dict[str, str]:
        self._token = source.get()
        return {"Authorization": f"Bearer {self._token}"}

    return {
        "_extra_headers": headers,
        "_token_rejected": lambda self: source.rejected(self._token),
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
