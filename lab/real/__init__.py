"""Real MCP servers that no one here wrote, on loopback: installed, started, called."""
