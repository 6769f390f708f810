"""Connections follow no redirect of a server, and raise its errors without the token."""

import asyncio
import http
import traceback

import pytest

pytest.importorskip("websockets", reason="websockets is not installed")

import websockets

from grupo.envs.openenv.connection import (
    INVALID_ACTION_CODE,
    Connection,
    InvalidActionError,
    connect_without_redirects,
)

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
