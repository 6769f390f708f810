"""Tools of a real MCP server over streamable HTTP, on a loopback port."""

import base64
import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from urllib.parse import quote

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs import MultiTurn
from grupo.envs.tools import McpServer, Toolbox
from grupo.envs.tools.mcp import connection_of
from grupo.util.errors import ConfigError
from tests.helpers.http_serving import serving, stop
from tests.helpers.mcp_http_app import Meeting, make_app
from tests.helpers.scripted_play import play

SESSION_HEADER = "mcp-session-id"


@pytest.fixture(scope="module")
def remote():
    """The address of a server, and its requests."""
    requests = []
    with serving(make_app(), requests=requests) as (url, _):
        address = f"{url}/mcp"
        yield address, requests
        connection_of(address).close()


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def env_of(address, **fields):
    return MultiTurn(Toolbox((McpServer(address, **fields),)), time_limit=60.0)


def replies(address, *texts, **fields):
    (rollout,) = play(env_of(address, **fields), [*texts, "done"])
    assert rollout.error == ""
    return [observation for observation, _ in rollout.turns][1:], rollout.reward_terms


def test_tools_are_called_over_http(remote):
    address, _ = remote
    (total, table), terms = replies(address, call("add", a=2, b=3), call("table"))
    assert (total, json.loads(table)) == ("5", {"lakes": 3})
    assert terms["tool_calls"] == 2.0


def test_calls_of_many_rollouts_run_at_the_same_time_in_one_session(remote):
    address, requests = remote
    Meeting.running = Meeting.largest = 0
    tools = {spec.name: spec for spec in McpServer(address).tool_specs()}
    with ThreadPoolExecutor(24) as pool:
        results = list(pool.map(lambda _: tools["meet"].function(people=24), range(24)))
    assert results == ["met 24"] * 24
    assert len({headers.get(SESSION_HEADER) for *_, headers in requests} - {None}) <= 1


def test_an_error_of_a_tool_is_a_reply(remote):
    (reply, after), terms = replies(remote[0], call("fail", reason="too dark"), call("add", a=1))
    assert reply.startswith("error: McpToolError: ")
    assert "too dark" in reply
    assert (after, terms["tool_errors"]) == ("2", 1.0)


@pytest.mark.parametrize("tool", [call("hang"), call("block", seconds=1.0)])
def test_a_tool_that_hangs_is_an_error_and_later_calls_work(remote, tool):
    texts = [tool, call("add", a=1)]
    (reply, after), _ = replies(remote[0], *texts, call_time_limit=0.4)
    assert reply == "error: TimeoutError: no answer in 0.4 s"
    assert after == "2"


@pytest.mark.parametrize("characters", [100_000, 3_000_000])
def test_a_huge_result_is_cut_or_an_error_and_later_calls_work(remote, characters):
    (reply, after), _ = replies(remote[0], call("huge", characters=characters), call("add", a=1))
    cut = "x" * 2000 + f"\n[the first 2,000 of {characters:,} characters]"
    assert reply == cut or reply.startswith("error: McpToolError: ")
    assert (len(reply) <= 2100, after) == (True, "2")


def test_content_that_is_no_text_is_named(remote):
    (reply,), _ = replies(remote[0], call("picture"))
    assert reply == "a lake\n[image]"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_server_that_ends_during_a_call_fails_the_rollout_and_not_the_run():
    with serving(make_app()) as (url, server):
        address = f"{url}/mcp"
        env = env_of(address, call_time_limit=20.0)
        env.env_factory.check()
        Thread(target=lambda: (time.sleep(0.3), stop(server))).start()
        (during,) = play(env, [call("hang"), "done"])
    (after,) = play(env, [call("add", a=1), "done"])
    for rollout in (during, after):
        assert f"the MCP server '{address}' does not start" in rollout.error
    connection_of(address).close()


def client_of(connection):
    return connection._loop.call(connection._running_client(), 20.0)


def test_a_server_that_was_started_again_is_called_again():
    port = free_port()
    with serving(make_app(), port) as (url, _):
        address = f"{url}/mcp"
        assert replies(address, call("add", a=1))[0] == ["2"]
    with serving(make_app(), port):
        tools = {spec.name: spec for spec in McpServer(address).tool_specs()}
        with ThreadPoolExecutor(8) as pool:  # whose session the server does not know
            results = list(pool.map(lambda a: tools["add"].function(a=a), range(8)))
        assert results == [str(a + 1) for a in range(8)]
        connection_of(address).close()


def test_a_call_that_notices_late_that_a_connection_is_closed_leaves_the_new_one_open(remote):
    connection = connection_of(remote[0])
    old_client = client_of(connection)
    connection.close()
    new_client = client_of(connection)
    assert not connection._loop.call(connection._is_alive(old_client), 20.0)
    assert client_of(connection) is new_client is not old_client


def test_the_token_is_sent_with_every_request_and_never_shown(monkeypatch):
    monkeypatch.setenv("REMOTE_TOKEN", "secret-123")
    requests = []
    with serving(make_app(), requests=requests) as (url, _):
        server = McpServer(f"{url}/mcp", token_env="REMOTE_TOKEN")
        env = MultiTurn(Toolbox((server,)), time_limit=60.0)
        (rollout,) = play(env, [call("fail", reason="secret-123"), "done"])
        connection_of(server.address, (), "REMOTE_TOKEN").close()
    assert {headers.get("authorization") for *_, headers in requests} == {"Bearer secret-123"}
    reply = rollout.turns[1][0]
    assert "[token]" in reply
    assert "secret-123" not in f"{env} {reply}"


TOKEN = "q7Tz/Lw3+kVb9XyRm2Hd"


@pytest.fixture
def trusted(remote, monkeypatch):
    """The replies of the server, which knows the token, to calls."""
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    yield lambda *calls: "\n".join(replies(remote[0], *calls, token_env="REMOTE_TOKEN")[0])
    connection_of(remote[0], (), "REMOTE_TOKEN").close()


@pytest.mark.parametrize(
    "texts",
    [
        [TOKEN[:7], TOKEN[7:]],
        [TOKEN[:4], "picture", TOKEN[4:8], TOKEN[8:12], "picture", TOKEN[12:]],
        [*TOKEN],
        [base64.b64encode(TOKEN.encode()).decode()],
        [quote(TOKEN, safe="")],
        [TOKEN.encode().hex()],
        ["".join(f"\\u{ord(char):04x}" for char in TOKEN)],
    ],
)
def test_the_token_is_filtered_in_every_encoding_and_across_the_parts_of_a_result(trusted, texts):
    reply = trusted(call("parts", texts=["a", *texts, "b"]))
    text = reply.replace("[image]", "").replace("\n", "")
    assert re.fullmatch(r"a\[token\](.=)?b", text)  # base64 ends in bits of one character


def test_of_a_token_in_two_calls_one_half_is_filtered(trusted):
    reply = trusted(call("parts", texts=[TOKEN[:9]]), call("fail", reason=TOKEN[9:]))
    assert "[token]" in reply
    assert TOKEN not in reply.replace("\n", "")


def test_a_server_whose_tools_are_named_after_the_token_is_refused_without_it(remote, monkeypatch):
    monkeypatch.setenv("REMOTE_TOKEN", "add")
    with pytest.raises(ConfigError, match="the names of the server's tools hold its token"):
        McpServer(remote[0], tools=("other",), token_env="REMOTE_TOKEN").check()
    connection_of(remote[0], (), "REMOTE_TOKEN").close()


async def not_found(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body"})


def redirecting(url):
    """An application that redirects every request to another server."""

    async def app(scope, receive, send):
        if scope["type"] == "http":
            headers = [(b"location", f"{url}{scope['path']}".encode())]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body"})

    return app


def test_a_redirect_to_another_server_is_not_followed(monkeypatch):
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    requests = []
    with (
        serving(not_found, requests=requests) as (other, _),
        serving(redirecting(other)) as (url, _),
    ):
        server = McpServer(f"{url}/mcp", token_env="REMOTE_TOKEN")
        with pytest.raises(ConfigError, match="does not start") as caught:
            server.check()
        connection_of(server.address, (), "REMOTE_TOKEN").close()
    assert (requests, TOKEN in str(caught.value)) == ([], False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"address": "http://127.0.0.1:1/mcp"}, "'http://127.0.0.1:1/mcp' does not start"),
        ({"address": "http://a:b@host/mcp"}, "address: the URL holds a user name or a password"),
        ({"address": "http://host/mcp", "token_env": "NO_SUCH"}, "'NO_SUCH' is not set"),
        ({"address": "python s.py", "token_env": "T"}, "token_env: only a server at a URL"),
        ({"address": "http://host", "variables": (("A", "b"),)}, "variables: a server at a URL"),
    ],
)
def test_an_address_that_cannot_work_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        McpServer(**fields).check()
