"""Limits of the connections to the server of a policy."""

import asyncio
import json
import resource
from contextlib import asynccontextmanager

import pytest

from grupo.envs.proxy import connections, server
from grupo.envs.proxy.connections import max_connections
from grupo.envs.proxy.server import ApiServer
from grupo.util.limits import CONNECTIONS, Limit

BODY = json.dumps({"messages": [{"role": "user", "content": "a"}]}).encode()


class Waiting:
    """An endpoint that answers no call before the end of the test."""

    def __init__(self):
        self.begun = asyncio.Semaphore(0)

    async def complete(self, request):
        self.begun.release()
        await asyncio.get_running_loop().create_future()


class Client:
    """A connection that sends requests as bytes."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def call(self, key):
        self.send(f"POST /rollouts/{key}/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:1\r\n")
        self.send(f"Content-Length: {len(BODY)}\r\n\r\n{BODY.decode()}")

    def send(self, text):
        self.writer.write(text.encode())

    async def models(self, key):
        """The status of a request that is answered at once."""
        self.send(f"GET /rollouts/{key}/v1/models HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
        return await self.reply()

    async def reply(self):
        """Status and body of a reply."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), json.loads(await self.reader.readexactly(length))

    async def is_closed(self):
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:  # what was sent last was not read
            return True


@asynccontextmanager
async def serving():
    """A server with the keys "a" and "b", and a function that connects to it."""
    endpoints = {"a": Waiting(), "b": Waiting()}
    api, writers = ApiServer(endpoints), []
    await api.start()

    async def connect():
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writers.append(writer)
        return Client(reader, writer)

    try:
        async with asyncio.timeout(20):
            yield endpoints, connect
    finally:
        for writer in writers:
            writer.close()
        await api.stop()


@pytest.fixture
def three_connections(monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS", Limit("", 3, "", ""))


def test_a_connection_is_refused_with_a_message_while_all_have_calls(three_connections):
    async def check():
        async with serving() as (endpoints, connect):
            for _ in range(3):
                (await connect()).call("a")
                await endpoints["a"].begun.acquire()
            status, body = await (await connect()).models("b")
            assert (status, body["error"]["code"]) == (503, "too_many_connections")
            assert body["error"]["message"].startswith("All 3 connections of the server have a ca")

    asyncio.run(check())


def test_idle_connections_give_way_to_new_ones_the_oldest_first(three_connections):
    async def check():
        async with serving() as (endpoints, connect):
            working = await connect()
            working.call("a")
            await endpoints["a"].begun.acquire()
            first, second = await connect(), await connect()
            statuses = [(await first.models("b"))[0], (await second.models("unknown"))[0]]
            assert statuses == [200, 401]
            last = await connect()
            assert (await last.models("b"))[0] == 200
            assert await first.is_closed()
            assert (await second.models("b"))[0] == 200

    asyncio.run(check())


@pytest.mark.parametrize("sent", ["", "POST /v1", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /"])
def test_a_connection_without_a_complete_request_is_closed(monkeypatch, sent):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.05)

    async def check():
        async with serving() as (_, connect):
            client = await connect()
            client.send(sent)
            if "Host" in sent:
                await client.reply()
            assert await client.is_closed()

    asyncio.run(check())


def test_headers_that_drip_in_do_not_extend_the_time(monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)

    async def drip(client):
        client.send("GET / HTTP/1.1\r\n")
        while True:
            client.send("A: a\r\n")
            await asyncio.sleep(0.01)

    async def check():
        async with serving() as (_, connect):
            client = await connect()
            dripping = asyncio.create_task(drip(client))
            assert await client.is_closed()
            dripping.cancel()

    asyncio.run(check())


def test_calls_of_one_key_beyond_the_limit_are_refused_and_those_of_others_are_not(monkeypatch):
    monkeypatch.setattr(connections, "WAITING_CALLS", Limit("", 2, "calls", ""))

    async def check():
        async with serving() as (endpoints, connect):
            for key in ("a", "a", "b"):
                (await connect()).call(key)
                await endpoints[key].begun.acquire()
            client = await connect()
            client.call("a")
            status, body = await client.reply()
            message = "2 calls are in progress. Allowed: at most 2 calls."
            assert (status, body["error"]["message"]) == (429, message)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("open_files", "expected"),
    [
        (100, 50),
        (10**6, CONNECTIONS.maximum),
        (resource.RLIM_INFINITY, CONNECTIONS.maximum),
    ],
)
def test_connections_take_at_most_half_of_the_open_files(monkeypatch, open_files, expected):
    monkeypatch.setattr(resource, "getrlimit", lambda name: (open_files, open_files))
    assert max_connections() == expected
