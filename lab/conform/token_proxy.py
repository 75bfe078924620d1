"""A proxy that adds a bearer token to each request, for a suite that cannot be given one.

    python -m lab.conform.token_proxy PORT UPSTREAM_PORT        (the token: variable PROXY_TOKEN)

Both ports are on 127.0.0.1. All other bytes pass as they are, in both directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys

READ_BYTES = 65536
HEAD_LIMIT = 1 << 20


async def carry_requests(
    client: asyncio.StreamReader, upstream: asyncio.StreamWriter, line: bytes
) -> None:
    """Pass requests on, one after the other; their bodies have a length, if any."""
    while True:
        first = await client.readuntil(b"\r\n")
        rest = await client.readuntil(b"\r\n\r\n") if first.strip() else b""
        length = 0
        for header in rest.split(b"\r\n"):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        upstream.write(first + line + rest + await client.readexactly(length))
        await upstream.drain()


async def carry_answers(upstream: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    """Pass on what the server says, as it comes, until it closes."""
    while piece := await upstream.read(READ_BYTES):
        client.write(piece)
        await client.drain()


async def serve(port: int, upstream_port: int, token: str) -> None:
    """Listen until killed."""
    line = f"Authorization: Bearer {token}\r\n".encode("latin-1")

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", upstream_port)
        both = [
            asyncio.create_task(carry_requests(reader, requests, line)),
            asyncio.create_task(carry_answers(answers, writer)),
        ]
        _, other = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in other:
            task.cancel()
        gone = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        for task in both:
            with contextlib.suppress(*gone):
                await task
        requests.close()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", port, limit=HEAD_LIMIT)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), os.environ["PROXY_TOKEN"]))
