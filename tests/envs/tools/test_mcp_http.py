"""Tools of a real MCP server over streamable HTTP, on a loopback port."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

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
    assert reply == "x" * 2000 or reply.startswith("error: McpToolError: ")
    assert (len(reply) <= 2000, after) == (True, "2")


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
