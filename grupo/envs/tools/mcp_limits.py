"""Limits on what an MCP server sends: values in a reply, messages between two calls, and tools.

The SDK has none: it validates each part of a reply, and answers each request of the server.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from grupo.util.json_text import has_more_values
from grupo.util.limits import REPLY_SIZE, REPLY_VALUES, SERVER_TOOLS

MAX_PAGES = 100  # of a list of tools


@asynccontextmanager
async def limited_messages(
    transport: Any, count_message: Callable[[], bool]
) -> AsyncGenerator[Any]:
    """A transport of the SDK whose messages from the server are limited.

    Args:
        transport: The transport.
        count_message: Called for each message; False ends the connection.
    """
    async with transport as (messages, write_stream):
        yield _LimitedMessages(messages, count_message), write_stream


class _LimitedMessages:
    """The messages of a server, as the SDK's client reads them."""

    def __init__(self, messages: Any, count_message: Callable[[], bool]) -> None:
        self._messages = messages
        self._count_message = count_message

    async def __aenter__(self) -> "_LimitedMessages":
        await self._messages.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._messages.__aexit__(*error)

    def __aiter__(self) -> "_LimitedMessages":
        return self

    async def __anext__(self) -> Any:
        item = await self._messages.__anext__()
        if not self._count_message():
            raise StopAsyncIteration
        message = getattr(item, "message", None)  # an error of the transport has none
        result = getattr(message, "result", None)
        if message is None or not has_more_values(result, REPLY_VALUES.maximum):
            return item
        return replace(item, message=_error_reply(message.id))


def _error_reply(number: Any) -> Any:
    """The reply to a request in place of one with too many values."""
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    reason = f"the reply has too many values: {REPLY_VALUES.allowed}"
    error = ErrorData(code=INTERNAL_ERROR, message=reason)
    return JSONRPCError(jsonrpc="2.0", id=number, error=error)


async def list_all_tools(client: Any) -> Sequence[Any]:
    """The tools of all pages.

    Raises:
        ValueError: There are too many pages or tools, or they are too large.
    """
    tools: list[Any] = []
    size, cursor = 0, None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        size += sum(len(tool.model_dump_json()) for tool in page.tools)
        if len(tools) > SERVER_TOOLS.maximum:
            raise ValueError(f"it lists too many tools: {SERVER_TOOLS.allowed}")
        if size > REPLY_SIZE.maximum:
            raise ValueError(f"its list of tools is too large: {REPLY_SIZE.allowed}")
        cursor = page.next_cursor
        if not cursor:
            return tools
    raise ValueError(f"its list of tools has too many pages: at most {MAX_PAGES}")
