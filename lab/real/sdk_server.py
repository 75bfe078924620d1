"""Ten lines of server on one of the Python SDKs; run by the Python that has it installed.

python sdk_server.py mcp1|mcp2|fastmcp PORT [--stateless] [--json]

Annotations stay objects here: mcp 1.10 does not see a Context in a string.
"""

import argparse
from typing import Any

options = argparse.ArgumentParser()
options.add_argument("sdk", choices=["mcp1", "mcp2", "fastmcp"])
options.add_argument("port", type=int)
options.add_argument("--stateless", action="store_true")
options.add_argument("--json", action="store_true")
asked = options.parse_args()

address = {"host": "127.0.0.1", "port": asked.port}
form = {"stateless_http": asked.stateless, "json_response": asked.json}
server: Any
if asked.sdk == "mcp1":
    from mcp.server.fastmcp import Context, FastMCP

    server, run = FastMCP("live", log_level="WARNING", **address, **form), {}
elif asked.sdk == "mcp2":
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    server, run = MCPServer("live", log_level="WARNING"), {**address, **form}
else:
    from fastmcp import Context, FastMCP

    server = FastMCP("live")
    run = {**address, **form, "show_banner": False, "log_level": "WARNING"}


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def weather(city: str) -> dict[str, Any]:
    """Answer in structured content."""
    return {"city": city, "forecast": ["dry", "wet", "dry"], "degrees": 21.5}


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Report progress before the answer."""
    for number in range(to):
        await ctx.report_progress(number, to)
    return f"counted to {to}"


server.run(transport="streamable-http", **run)
