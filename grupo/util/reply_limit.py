"""A limit on the bytes of each reply that a client of HTTP or of a program reads into memory.

And their codec, which a server may not choose: some of Python's take quadratic time.
"""

import sys
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

from grupo.util.limits import REPLY_SIZE

UNCOMPRESSED = {"Accept-Encoding": "identity"}  # a compressed reply may be 1,000 times as large
# called with the reason when the program of this context has printed a line beyond the limit
on_long_line: ContextVar[Callable[[str], None]] = ContextVar("on_long_line")


async def read_as_utf8(response: Any) -> None:
    """Make the text of a reply that of UTF-8, whatever codec its server names.

    A hook `response` of a client of httpx or httpx2.
    """
    response.encoding = "utf-8"


async def limit_reply(response: Any) -> None:
    """Make a reply beyond `REPLY_SIZE`, or a compressed one, a `StreamError`.

    A hook `response` of a client that sends the header `UNCOMPRESSED`; the client is one of httpx
    or of httpx2, which has the same interface.
    """
    http = sys.modules[type(response).__module__.partition(".")[0]]
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        await response.aclose()
        raise http.StreamError(f"the reply is compressed: {encoding[:20]!r}")
    response.stream = _limited_stream(http)(response.stream)


@cache
def _limited_stream(http: Any) -> Any:
    """The class of limited streams, which must be one of the client's module."""

    class LimitedStream(http.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in self._stream:
                size += len(piece)
                if size > REPLY_SIZE.maximum:
                    raise http.StreamError(_too_large())
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return LimitedStream


@cache
def limited_lines() -> Any:
    """A class of anyio's text streams that end at a line beyond `REPLY_SIZE`.

    `on_long_line` is called then; the lines before that one are lost if they arrive with it.
    """
    import anyio
    from anyio.streams.text import TextReceiveStream

    class LimitedLines(TextReceiveStream):
        _size = 0  # bytes of the last line so far

        async def receive(self) -> str:
            piece = await super().receive()
            first, *others = piece.encode().split(b"\n")
            size = self._size + len(first)
            self._size = len(others[-1]) if others else size
            if max(size, self._size) > REPLY_SIZE.maximum:
                await self.aclose()
                on_long_line.get()(_too_large())
                raise anyio.EndOfStream
            return piece

    return LimitedLines


def _too_large() -> str:
    return f"the reply is too large: {REPLY_SIZE.allowed}"
