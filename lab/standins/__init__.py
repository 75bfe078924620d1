"""Stand-ins for four hosted MCP servers, on loopback: `python -m lab.standins --run-dir DIR`.

The official Python SDK's own server code speaks the wire, so nothing here parses MCP.
Around it: the published tools and schemas, the session posture, authentication, replies
of the real shape, and latencies drawn from the published run.  They say in `serverInfo`
that they are stand-ins, and nothing here ever leaves the machine.
"""
