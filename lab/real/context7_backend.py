"""What Context7's own server asks over the internet, answered on a port of 127.0.0.1.

The MCP server in front of it is the real one; only its search index is not.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIBRARY = {
    "id": "/pallets/flask",
    "title": "Flask",
    "description": "A framework for web applications",
    "totalSnippets": 100,
    "trustScore": 9,
    "versions": [],
}
PAGE = "### Blueprints\n\nSource: https://example.invalid/flask\n\nA blueprint groups views.\n" * 20


class Backend(BaseHTTPRequestHandler):
    """Answers both of the server's questions, whatever is asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a search or a page of documentation."""
        searching = "/libs/search" in self.path
        body = json.dumps({"results": [LIBRARY] * 3}) if searching else PAGE
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if searching else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Backend).serve_forever()
