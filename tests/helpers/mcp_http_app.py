"""An MCP server over streamable HTTP, as an ASGI application: slow, failing and huge tools."""

import asyncio
import threading

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError


class Meeting:
    """Counts the calls that run at the same time."""

    running = largest = 0


def make_app(description=None):
    """The application, with a new server; `description` is that of the tool `add`."""
    server = MCPServer("remote", log_level="CRITICAL")

    @server.tool(description=description)
    def add(a: int, b: int = 1) -> int:
        """The sum of two numbers."""
        return a + b

    @server.tool()
    async def meet(people: int) -> str:
        """Returns once so many calls run at the same time."""
        Meeting.running += 1
        Meeting.largest = max(Meeting.largest, Meeting.running)
        while Meeting.largest < people:
            await asyncio.sleep(0.005)
        Meeting.running -= 1
        return f"met {people}"

    @server.tool()
    async def hang() -> str:
        """Never returns."""
        await asyncio.sleep(3600)
        return ""

    @server.tool()
    def block(seconds: float) -> str:
        """Blocks its thread."""
        threading.Event().wait(seconds)
        return "late"

    @server.tool()
    def fail(reason: str) -> str:
        """Raises."""
        raise ToolError(reason)

    @server.tool()
    def huge(characters: int) -> str:
        """A long text."""
        return "x" * characters

    @server.tool()
    def picture() -> list:
        """A text and a picture."""
        return ["a lake", Image(data=b"\x89PNG", format="png")]

    @server.tool()
    def parts(texts: list[str]) -> list:
        """Texts as parts of one result; "picture" is a picture."""
        picture = Image(data=b"\x89PNG", format="png")
        return [picture if text == "picture" else text for text in texts]

    @server.tool()
    def table() -> dict[str, int]:
        """A structure."""
        return {"lakes": 3}

    return server.streamable_http_app()
