"""A server of one revision: python old_server.py PORT [STATUS]

It answers 2025-03-26 whatever is asked for, and any other method than a handshake's with HTTP 404;
with a STATUS, it answers everything with that.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REVISION = "2025-03-26"
ANSWERS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": REVISION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "old", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "again"}]},
}


class Old(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status = int(sys.argv[2]) if len(sys.argv) > 2 else 0

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = ANSWERS.get(message["method"])
        status = self.status or (202 if "id" not in message else 200 if result else 404)
        body = b""
        if status == 200:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Old).serve_forever()
