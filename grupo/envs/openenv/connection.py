"""A connection to an environment server of OpenEnv, for one rollout."""

from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from functools import cache, partial
from importlib import import_module
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from grupo.envs.background_loop import BackgroundLoop
from grupo.envs.bearer_token import auth_headers, without_token
from grupo.envs.daemon_threads import call_in_worker
from grupo.envs.openenv.validate import MAX_CHARS, check_reply, checked_schema
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json
from grupo.util.limits import OBSERVATION_SIZE
from grupo.util.optional_deps import optional_dependency

SCHEMA_SECONDS = 20.0  # in which a server must have answered with the schema of its actions
NO_LIMIT = 1e6  # seconds; the caller closes a connection that does not answer in time
INVALID_ACTION_CODE = "(code: VALIDATION_ERROR)"  # ends the client's message
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

_loop = BackgroundLoop()  # of all connections


class InvalidActionError(Exception):
    """The server refused an action, which does not fit its schema."""


class Connection:
    """One client of OpenEnv with a session of its own in the server.

    The calls wait for the answer without a limit. `close` ends a call that waits in another thread.

    Args:
        base_url: URL of the server.
        token_env: Environment variable that holds the server's token, or "".
    """

    def __init__(self, base_url: str, token_env: str) -> None:
        make_client = import_openenv()
        self._client: Any = make_client(
            base_url,
            message_timeout_s=NO_LIMIT,
            mode="simulation",
            headers=dict(auth_headers(token_env)),
        )
        self._token_env = token_env
        self._socket: Any = None
        self._running: Future[Any] | None = None
        self._closed = False
        self._lock = Lock()

    def reset(self, arguments: Mapping[str, Any]) -> Any:
        """The first result of the session.

        Raises:
            ConnectionError: The server cannot be reached.
            RuntimeError: The environment raised, or the server has no session left.
        """
        return self._call(self._reset(arguments))

    def step(self, action: Mapping[str, Any]) -> Any:
        """The result of an action.

        Raises:
            InvalidActionError: The action does not fit its schema.
            ConnectionError: The connection was lost.
            RuntimeError: The environment raised.
        """
        return self._call(self._step(action))

    def close(self) -> None:
        """End the running call, and the session in the server; does not wait for it."""
        with self._lock:
            was_used = self._running is not None and not self._closed
            self._closed = True
        if was_used and self._running:
            self._running.cancel()
            _loop.submit(self._close())

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with self._lock:
            if self._closed:
                coroutine.close()
                raise ConnectionError("the connection is closed")
            self._running = _loop.submit(coroutine)
        try:
            return self._running.result()
        except Exception as error:  # with the server's message
            raise self._error_without_token(error) from None

    def _error_without_token(self, error: Exception) -> Exception:
        """The error that a caller gets: the same, or one whose message is without the token."""
        message = without_token(str(error), self._token_env)
        if isinstance(error, RuntimeError):
            is_invalid = message.endswith(INVALID_ACTION_CODE)
            return InvalidActionError(message) if is_invalid else RuntimeError(message)
        return error if message == str(error) else ConnectionError(message)

    async def _reset(self, arguments: Mapping[str, Any]) -> Any:
        await self._client.connect()
        self._socket = self._client._ws
        return await self._client.reset(**arguments)

    async def _step(self, action: Mapping[str, Any]) -> Any:
        from websockets.protocol import State

        # the client would connect again, to a session that has not been reset
        if self._client._ws is not self._socket or self._socket.state is not State.OPEN:
            raise ConnectionError("the server closed the connection between two turns")
        return await self._client.step(dict(action))

    async def _close(self) -> None:
        await self._client.close()


def import_openenv() -> Any:
    """The client of OpenEnv for any environment; the first import takes seconds."""
    with optional_dependency("OpenEnv", "openenv"):
        client: Any = import_module("openenv.core.env_client")
        client.ws_connect = limited_connect()  # its own follows redirects to any host
        return import_module("openenv.core.generic_client").GenericEnvClient


@cache
def limited_connect() -> Any:
    """`connect` of websockets for one address, of which each message is checked.

    A redirect, a compressed message and one beyond `OBSERVATION_SIZE` are errors.
    """
    from websockets.asyncio.client import ClientConnection, connect

    class CheckedConnection(ClientConnection):
        async def recv(self, decode: bool | None = None) -> Any:
            message = await super().recv(decode)
            check_reply(message)
            return message

    class Connect(connect):
        def __init__(self, url: str, **options: Any) -> None:
            limits: dict[str, Any] = {"max_size": OBSERVATION_SIZE.maximum, "compression": None}
            super().__init__(url, **(options | limits), create_connection=CheckedConnection)

        def process_redirect(self, exc: Exception) -> Exception | str:
            return exc

    return Connect


@cache
def action_schema(base_url: str, token_env: str) -> Mapping[str, Any]:
    """The JSON schema of a server's actions.

    Raises:
        ConfigError: The server does not answer as one of OpenEnv.
    """
    import httpx  # comes with OpenEnv

    parts = urlsplit(base_url)
    url = f"{base_url.replace('ws', 'http', 1) if parts.scheme[:2] == 'ws' else base_url}/schema"
    try:
        # the client's own limit is one of each piece that arrives
        text = call_in_worker(partial(_read_schema, url, token_env), SCHEMA_SECONDS)
        reply = without_token(parse_json(text), token_env)
        if not isinstance(reply, Mapping) or "action" not in reply:
            raise ValueError(f"the reply is {ascii(reply)[:MAX_CHARS]}, no object with `action`")
        return checked_schema(reply["action"])
    except ConfigError:
        raise
    except (httpx.HTTPError, ValueError, OSError) as error:
        reason = without_token(f"{type(error).__name__}: {error}", token_env)
        raise ConfigError(f"address: {url} has no schema of OpenEnv: {reason}") from None


def _read_schema(url: str, token_env: str) -> str:
    """The text at an address; raises `ValueError` if it is too long."""
    import httpx

    uses_proxy = urlsplit(url).hostname not in LOCAL_HOSTS
    headers = {"Accept-Encoding": "identity", **auth_headers(token_env)}
    text = bytearray()
    with (
        httpx.Client(headers=headers, timeout=SCHEMA_SECONDS, trust_env=uses_proxy) as client,
        client.stream("GET", url, follow_redirects=False) as response,
    ):
        response.raise_for_status()
        for piece in response.iter_bytes():
            text += piece
            if len(text) > OBSERVATION_SIZE.maximum:
                raise ValueError(f"the reply is too large. Allowed: {OBSERVATION_SIZE.allowed}")
    return text.decode()
