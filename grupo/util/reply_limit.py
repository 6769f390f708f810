"""A limit on the bytes of each reply that an HTTP client reads into memory."""

import sys
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

from grupo.util.limits import REPLY_SIZE

UNCOMPRESSED = {"Accept-Encoding": "identity"}  # a compressed reply may be 1,000 times as large


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
                    raise http.StreamError(f"the reply is too large: {REPLY_SIZE.allowed}")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return LimitedStream
