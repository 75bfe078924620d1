"""What GitLab's MCP server asks of GitLab, answered on a port of 127.0.0.1.

The MCP server in front of it is the real one, in Go; only its GitLab is not.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROJECT = {
    "id": 7,
    "name": "flask",
    "path_with_namespace": "pallets/flask",
    "description": "A framework for web applications",
    "visibility": "public",
    "default_branch": "main",
}
ANSWERS = {
    "/api/v4/user": {"id": 1, "username": "load", "name": "Load", "state": "active"},
    "/api/v4/personal_access_tokens/self": {"id": 1, "scopes": ["read_api"], "active": True},
    "/api/v4/version": {"version": "18.0.0", "revision": "0000000"},
    "/api/v4/projects": [PROJECT],
}


class Backend(BaseHTTPRequestHandler):
    """Answers who asks, and which projects there are; 404 to all else."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer what is known, and 404 to all else."""
        found = ANSWERS.get(self.path.partition("?")[0])
        body = json.dumps({"message": "404 Not Found"} if found is None else found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Backend).serve_forever()
