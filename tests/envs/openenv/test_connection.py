"""Connections follow no redirect of a server, and raise its errors without the token."""

import asyncio
import http
import json
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

pytest.importorskip("websockets", reason="websockets is not installed")

import websockets

from grupo.envs.openenv import connection
from grupo.envs.openenv.connection import (
    INVALID_ACTION_CODE,
    Connection,
    InvalidActionError,
    action_schema,
    connect_without_redirects,
)
from grupo.util.errors import ConfigError

ECHO_TOKEN = "q7TzLw3kVb9XyRm2Hd"


async def connections_after_a_redirect(connect):
    """How many connections another server gets when the first one redirects to it."""
    arrived = []

    async def other(websocket):
        arrived.append(websocket.request.headers.get("Authorization"))

    async with websockets.serve(other, "127.0.0.1", 0) as target:
        port = target.sockets[0].getsockname()[1]

        def redirect(connection, request):
            response = connection.respond(http.HTTPStatus.TEMPORARY_REDIRECT, "")
            response.headers["Location"] = f"ws://127.0.0.1:{port}/ws"
            return response

        async with websockets.serve(other, "127.0.0.1", 0, process_request=redirect) as first:
            url = f"ws://127.0.0.1:{first.sockets[0].getsockname()[1]}/ws"
            try:
                connection = await connect(url, proxy=None)
            except websockets.InvalidStatus as error:
                return error.response.status_code, arrived
            await connection.close()
            return 101, arrived


def test_a_redirect_is_an_error_and_the_other_server_gets_no_request():
    status, arrived = asyncio.run(connections_after_a_redirect(connect_without_redirects()))
    assert (status, arrived) == (307, [])


def test_the_client_library_alone_follows_it():
    status, arrived = asyncio.run(connections_after_a_redirect(websockets.connect))
    assert (status, len(arrived)) == (101, 1)


def test_errors_of_every_kind_are_raised_without_the_token(monkeypatch):
    pytest.importorskip("openenv", reason="OpenEnv is not installed: make test-adapters")
    monkeypatch.setenv("ECHO_TOKEN", ECHO_TOKEN)
    connection = Connection("http://127.0.0.1:1", "ECHO_TOKEN")

    async def fails(error):
        raise error

    message = f"closed: {ECHO_TOKEN}"
    kinds = [
        (RuntimeError(message), RuntimeError),
        (RuntimeError(f"{message} {INVALID_ACTION_CODE}"), InvalidActionError),
        (OSError(message), ConnectionError),
    ]
    for error, expected in kinds:
        with pytest.raises(expected, match=r"closed: \[token\]") as caught:
            connection._call(fails(error))
        assert "q7Tz" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(LookupError, match="other"):
        connection._call(fails(LookupError("other")))
    connection.close()


def drip(write, ended):
    while not ended.wait(0.1):
        write(b" ")


def pour(write, ended):
    while not ended.is_set():
        write(b" " * (1 << 20))


def at_once(text):
    return lambda write, ended: write(text)


@pytest.fixture
def schema_of(monkeypatch):
    """The schema of actions of a server with a given reply."""
    pytest.importorskip("httpx", reason="httpx is not installed")
    monkeypatch.setattr(connection, "SCHEMA_SECONDS", 1.0)
    monkeypatch.setattr(connection, "MAX_SCHEMA_BYTES", 1 << 20)
    ended = Event()
    replies = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                replies[-1](self.wfile.write, ended)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()

        def ask(reply):
            replies.append(reply)
            return action_schema(f"http://127.0.0.1:{server.server_address[1]}", "")

        yield ask
        ended.set()
        server.shutdown()


@pytest.mark.parametrize(
    "reply",
    [
        drip,
        pour,
        at_once(b'{"action": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        at_once(b'{"action": [1]}'),
        at_once(b'{"action": {"properties": {"a": 1}}}'),
        at_once(b'{"action": {"properties": 1, "required": [{}]}}'),
    ],
)
def test_a_schema_that_never_ends_or_is_none_is_one_error(reply, schema_of):
    with pytest.raises(ConfigError, match=r"^address: .* schema of "):
        schema_of(reply)


@pytest.mark.parametrize("reply", ["[1]", "null", '"action"', '{"actions": {}}'])
def test_a_reply_without_a_schema_is_shown(reply, schema_of):
    shown = ascii(json.loads(reply))
    with pytest.raises(ConfigError) as caught:
        schema_of(at_once(reply.encode()))
    assert f"the reply is {shown}, no object with `action`" in str(caught.value)
