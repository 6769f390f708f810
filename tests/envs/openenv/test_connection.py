"""Connections follow no redirect of a server, and raise its errors without the token."""

import asyncio
import http
import json
import traceback
from contextlib import suppress
from dataclasses import replace
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
    limited_connect,
)
from grupo.util.errors import ConfigError
from grupo.util.limits import OBSERVATION_SIZE

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
    status, arrived = asyncio.run(connections_after_a_redirect(limited_connect()))
    assert (status, arrived) == (307, [])


def test_the_client_library_alone_follows_it():
    status, arrived = asyncio.run(connections_after_a_redirect(websockets.connect))
    assert (status, len(arrived)) == (101, 1)


def received(*messages, **options):
    """What a connection receives from a server that sends these messages, each or its error."""

    async def send(websocket):
        for message in messages:
            await websocket.send(message)

    async def receive():
        async with websockets.serve(send, "127.0.0.1", 0, **options) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"
            async with limited_connect()(url, proxy=None) as connection:
                compressed = "Sec-WebSocket-Extensions" in connection.request.headers
                replies = []
                for _ in messages:
                    try:
                        replies.append(await connection.recv())
                    except (RuntimeError, websockets.ConnectionClosedError) as error:
                        replies.append(error)
                return compressed, replies

    return asyncio.run(receive())


OBSERVATION = json.dumps({"type": "observation", "data": {"observation": {"a": "b"}}})
ERROR = json.dumps({"type": "error", "data": {"message": "full", "code": "CAPACITY_REACHED"}})


def test_observations_and_errors_are_received_as_they_are():
    assert received(OBSERVATION, ERROR) == (False, [OBSERVATION, ERROR])


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        *(("hello", "is not JSON: 'hello'"), ("[" * 10_000, "is not JSON: '"), ("", "is not JSON")),
        *(("9" * 5000, "is not JSON: '9999"), (b"\xff\xfe\x00", "is not JSON: b'")),
        *(("null", "is None, which has no observation"), ("[1]", "is [1], which has no obs")),
        *(("{}", "is {}, which has no observation"), ('{"type": "observation"}', "is {'type': ")),
        ('{"type": "observation", "data": {"observation": [1]}}', "is {'type': 'observation', "),
        ('{"type": "state", "data": {"observation": {}}}', "is {'type': 'state'"),
        ('{"data": {"observation": {}}}', "is {'data': {'observation'"),
        ('{"type": "error", "data": [1]}', "is {'type': 'error', 'data': [1]}"),
        ("[" + "0," * 300_000 + "0]", "has too many values: at most 300,000 values"),
    ],
)
def test_a_reply_that_is_none_is_an_error_with_its_beginning(message, problem):
    _, (error, after) = received(message, OBSERVATION)
    assert isinstance(error, RuntimeError)
    assert f"the server's reply {problem}" in str(error)
    assert after == OBSERVATION


def test_the_client_offers_no_compression_and_reads_no_message_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(connection, "OBSERVATION_SIZE", replace(OBSERVATION_SIZE, maximum=1000))
    limited_connect.cache_clear()
    large = json.dumps({"type": "observation", "data": {"observation": {"a": "x" * 1000}}})
    compressed, (error,) = received(large)
    limited_connect.cache_clear()
    assert not compressed
    assert "message too big" in str(error)


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
    monkeypatch.setattr(connection, "OBSERVATION_SIZE", replace(OBSERVATION_SIZE, maximum=1 << 20))
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
def test_a_reply_without_a_schema_is_shown(reply, schema_of, monkeypatch):
    monkeypatch.setattr(connection, "SCHEMA_SECONDS", 60.0)  # a loaded machine answers late
    shown = ascii(json.loads(reply))
    with pytest.raises(ConfigError) as caught:
        schema_of(at_once(reply.encode()))
    assert f"the reply is {shown}, no object with `action`" in str(caught.value)
