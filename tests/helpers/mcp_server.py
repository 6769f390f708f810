"""An MCP server of sums, errors, and calls that hang or end the server."""

import os
import time

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("sums")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def fail(reason: str) -> str:
    """Raises."""
    raise ToolError(reason)


@server.tool()
def hang() -> str:
    """Never returns."""
    time.sleep(60)
    return ""


@server.tool()
def end(marker: str) -> str:
    """Ends the server, unless the file exists."""
    if os.path.exists(marker):
        return f"process {os.getpid()}"
    open(marker, "w").close()
    os._exit(3)


@server.tool()
def crash() -> str:
    """Ends the server."""
    os._exit(3)


if __name__ == "__main__":
    server.run("stdio")
