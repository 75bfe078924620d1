"""A proxy that counts the requests to each server behind it and changes nothing.

    python counting_proxy.py CONTROL_PORT LISTEN:UPSTREAM [LISTEN:UPSTREAM ...]

All ports are on 127.0.0.1. A connection to the control port is answered with the counts so far,
one JSON line: {"<LISTEN>": {"initialize": 10, "tools/call:echo": 42, "DELETE": 10}, ...}.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import sys

READ = 65536
Counts = collections.Counter[str]


def name_of(verb: str, body: bytes) -> str:
    """Name a request as our statistics do, without the label."""
    if verb != "POST":
        return verb
    message = json.loads(body)
    method = message.get("method")
    if method is None:
        return "client-response"
    return f"{method}:{message['params']['name']}" if method == "tools/call" else str(method)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, str, bytes]:
    """Return the head, the verb and the body of the next request; its body has a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return head, lines[0].partition(" ")[0], await reader.readexactly(length)


async def carry(client: asyncio.StreamWriter, upstream: asyncio.StreamReader) -> None:
    """Pass on what the server says, as it comes, until it closes."""
    with contextlib.suppress(ConnectionError):
        while piece := await upstream.read(READ):
            client.write(piece)
            await client.drain()
    client.close()


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: int, counts: Counts
) -> None:
    """Serve one connection of a client's by one of our own."""
    server_reader, server_writer = await asyncio.open_connection("127.0.0.1", upstream)
    back = asyncio.create_task(carry(writer, server_reader))
    try:
        while True:
            head, verb, body = await read_request(reader)
            counts[name_of(verb, body)] += 1
            server_writer.write(head + body)
            await server_writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass  # the client has closed
    finally:
        server_writer.close()
        back.cancel()
        writer.close()


async def main(control: int, pairs: list[tuple[int, int]]) -> None:
    """Listen on all of the ports until killed."""
    counts: dict[int, Counts] = {listen: collections.Counter() for listen, _ in pairs}

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(counts).encode() + b"\n")
        await writer.drain()
        writer.close()

    for listen, upstream in pairs:

        async def accept(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            upstream: int = upstream,
            counted: Counts = counts[listen],
        ) -> None:
            await serve(reader, writer, upstream, counted)

        await asyncio.start_server(accept, "127.0.0.1", listen)
    await (await asyncio.start_server(tell, "127.0.0.1", control)).serve_forever()


if __name__ == "__main__":
    chosen = [tuple(map(int, pair.split(":"))) for pair in sys.argv[2:]]
    asyncio.run(main(int(sys.argv[1]), [(listen, upstream) for listen, upstream in chosen]))
