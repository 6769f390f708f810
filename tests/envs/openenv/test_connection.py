"""The client's connections follow no redirect of a server; without an environment of OpenEnv."""

import asyncio
import http

import pytest

pytest.importorskip("websockets", reason="websockets is not installed")

import websockets

from grupo.envs.openenv.connection import connect_without_redirects


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
