"""A connection to an MCP server that is restarted where it ended."""

import asyncio
import atexit
import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, closing
from importlib import import_module
from typing import Any

from grupo.envs.background_loop import BackgroundLoop
from grupo.envs.bearer_token import auth_headers, without_token
from grupo.envs.tools.error_output import ErrorOutput
from grupo.envs.tools.mcp_limits import limited_messages, list_all_tools
from grupo.util.errors import ConfigError
from grupo.util.limits import SERVER_MESSAGES
from grupo.util.loader_errors import describe_error
from grupo.util.optional_deps import optional_dependency
from grupo.util.parent_death import ending_with_parent
from grupo.util.reply_limit import (
    UNCOMPRESSED,
    limit_reply,
    limited_lines,
    on_long_line,
    read_as_utf8,
)

START_SECONDS = 30.0  # in which a server must have started and listed its tools
CLOSE_SECONDS = 5.0
URL_PREFIXES = ("http://", "https://")
LOGGERS = ("mcp.client", "mcp.shared")  # they write what a server sends, with the token, as it is


class McpToolError(Exception):
    """A tool of an MCP server reported an error, or the server ended during the call."""


class McpConnection:
    """One server and its client, for all sessions of this process; closed when the process ends.

    Args:
        address: Command line of a server on standard input and output, or a URL.
        variables: Environment variables of the command.
        token_env: Environment variable that holds the token of a server at a URL, or "".
    """

    def __init__(self, address: str, variables: Mapping[str, str], token_env: str) -> None:
        self.address = address
        self.variables = variables
        self.token_env = token_env
        self._loop = BackgroundLoop()
        self._client: asyncio.Future[Any] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._refusal = ""  # why the running server was ended here
        self._num_messages = 0  # that it has sent since the last call
        self._lock = asyncio.Lock()
        atexit.register(self.close)

    def list_tools(self) -> Sequence[Any]:
        """The server's tools: name, description and JSON schema of the arguments.

        Raises:
            ConfigError: The server does not start or does not answer.
        """
        return self._start_errors(self._list_tools())

    def call(self, name: str, arguments: Mapping[str, Any], time_limit: float) -> str:
        """The text of a tool's result; a server that ended is started again.

        Raises:
            McpToolError: The tool reported an error, the server's reply was too large, or the
                server ended twice during the call.
            TimeoutError: The call took more than `time_limit` seconds.
            ConfigError: The server does not start.
        """
        for _ in range(2):
            client = self._start_errors(self._running_client())
            self._num_messages = 0
            try:
                result = self._loop.call(client.call_tool(name, dict(arguments)), time_limit)
            except TimeoutError:
                self._loop.submit(self._is_alive(client))  # which ends one that is not
                raise TimeoutError(f"no answer in {time_limit} s") from None
            except Exception as error:
                if refusal := self._refusal:
                    self._loop.call(self._stop(), CLOSE_SECONDS)
                    raise McpToolError(f"{refusal}. The connection was ended") from None
                if self._loop.call(self._is_alive(client), CLOSE_SECONDS):
                    raise McpToolError(self._without_token(str(error))) from None
                continue
            text = self._text_of(result)
            if result.is_error:
                raise McpToolError(text)
            return text
        raise McpToolError("the server ended during the call")

    def close(self) -> None:
        """End the server's process, or the connection."""
        if self._keeper:
            self._loop.call(self._stop(), CLOSE_SECONDS)

    def _start_errors(self, coroutine: Any) -> Any:
        try:
            return self._loop.call(coroutine, START_SECONDS)
        except ConfigError:
            raise
        except TimeoutError:
            self.close()  # the next call starts it again
            reason = f"no answer in {START_SECONDS} s"
        except Exception as error:
            reason = self._refusal or self._without_token(_innermost(error))
        # without its cause, which may show the token
        raise ConfigError(f"tools: the MCP server {self.address!r} does not answer: {reason}")

    def _without_token(self, text: str) -> str:
        return without_token(text, self.token_env)

    def _text_of(self, result: Any) -> str:
        """The text of a result; content of another kind is named in brackets."""
        texts = [part.text for part in result.content if part.type == "text"]
        cleaned = iter(without_token(texts, self.token_env))  # a token may span several parts
        parts = (next(cleaned) if p.type == "text" else f"[{p.type}]" for p in result.content)
        return "\n".join(parts)

    async def _list_tools(self) -> Sequence[Any]:
        return await list_all_tools(await self._running_client())

    async def _running_client(self) -> Any:
        """The client of a running server; starts the server if there is none."""
        async with self._lock:
            if self._keeper is None or self._keeper.done():
                self._client = asyncio.get_running_loop().create_future()
                self._ended = asyncio.Event()
                self._refusal = ""
                self._num_messages = 0
                self._keeper = asyncio.create_task(self._keep_open(self._client))
            assert self._client
            return await asyncio.shield(self._client)

    async def _keep_open(self, client_ready: "asyncio.Future[Any]") -> None:
        """Hold the connection open in one task, as its cancel scopes require."""
        ended = self._ended
        with closing(ErrorOutput()) as error_output:
            try:
                async with AsyncExitStack() as stack:
                    client = await self._connect(error_output, stack)
                    client_ready.set_result(client)
                    await ended.wait()
            except Exception as error:
                if not client_ready.done():
                    client_ready.set_exception(self._start_error(error, error_output))
            finally:
                client_ready.cancel()  # which a future with a result ignores

    async def _connect(self, error_output: ErrorOutput, stack: AsyncExitStack) -> Any:
        """The client of a server that is started, or connected to, and closed with the stack."""
        with optional_dependency("The MCP SDK", "mcp"):
            mcp: Any = import_module("mcp")
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        transport = await self._transport(mcp, error_output, stack)
        client = mcp.Client(limited_messages(transport, self._count_message))
        client = await stack.enter_async_context(client)
        # the SDK validates results by schemas of the server, with patterns that hang
        client.session.validate_tool_result = _accept
        return client

    def _start_error(self, error: Exception, error_output: ErrorOutput) -> ConfigError:
        """The error of a server that does not start, with the last line that it wrote."""
        if isinstance(error, ConfigError):
            return error
        problem = self._refusal or _innermost(error)
        reason = " ".join(filter(None, (problem, error_output.last_line())))
        reason = self._without_token(reason)
        return ConfigError(f"tools: the MCP server {self.address!r} does not start: {reason}")

    async def _is_alive(self, client: Any) -> bool:
        """True if the server answers; a connection that does not is closed."""
        try:
            await asyncio.wait_for(client.list_tools(cache_mode="refresh"), CLOSE_SECONDS / 2)
        except Exception:
            if self._client and self._client.done() and self._client.result() is client:
                await self._stop()  # unless another call has already connected again
            return False
        return True

    async def _stop(self) -> None:
        keeper = self._keeper
        self._keeper = None
        if keeper:
            self._ended.set()
            if self._client and not self._client.done():
                keeper.cancel()  # it waits for the start of the server
            await asyncio.wait({keeper}, timeout=CLOSE_SECONDS / 2)

    def _refuse(self, reason: str) -> None:
        """End the server for a reply that it sent; calls that wait for it fail."""
        self._refusal = reason
        self._ended.set()

    def _count_message(self) -> bool:
        """False if the server has sent too many since the last call; the connection ends then."""
        self._num_messages += 1
        if self._num_messages > SERVER_MESSAGES.maximum:
            self._refuse(f"too many messages of the server: {SERVER_MESSAGES.allowed}")
            return False
        return True

    async def _transport(self, mcp: Any, error_output: ErrorOutput, stack: AsyncExitStack) -> Any:
        """The SDK's transport to the server."""
        if self.address.startswith(URL_PREFIXES):
            http: Any = import_module("mcp.client.streamable_http")
            headers = {**auth_headers(self.token_env), **UNCOMPRESSED}
            client = http.create_mcp_http_client(headers=headers)
            client.event_hooks = {"response": [read_as_utf8, _limit_but_events]}
            await stack.enter_async_context(client)
            return http.streamable_http_client(self.address, http_client=client)
        command, *arguments = ending_with_parent(shlex.split(self.address))
        server = mcp.StdioServerParameters(
            command=command,
            args=arguments,
            env=dict(self.variables),
            encoding_error_handler="replace",  # an error would end the reader, not the server
        )
        stdio: Any = import_module("mcp.client.stdio")
        stdio.TextReceiveStream = limited_lines()  # the SDK's own reads a line of any length
        on_long_line.set(self._refuse)
        return mcp.stdio_client(server, errlog=error_output.file)


async def _limit_but_events(response: Any) -> None:
    """Limit replies that end; the SDK limits each event of a stream of events, which has no end."""
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        await limit_reply(response)


async def _accept(name: str, result: Any) -> None:
    """Takes any structured content of a result: only its text is used."""


def _innermost(error: BaseException) -> str:
    """The first error inside of exception groups, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return describe_error(error)
