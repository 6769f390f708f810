"""Tools of an MCP server that runs over standard input and output, or over HTTP."""

import os
import shlex
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs import MultiTurn
from grupo.envs.tools import McpServer, Toolbox, mcp, mcp_connection
from grupo.envs.tools.mcp import connection_of
from grupo.util.errors import ConfigError
from tests.helpers.paths import ROOT
from tests.helpers.processes import is_running, wait_until
from tests.helpers.scripted_play import play

SERVER = shlex.join((sys.executable, str(ROOT / "tests" / "helpers" / "mcp_server.py")))


def call(name, arguments="{}"):
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


def replies(*texts, **fields):
    toolbox = Toolbox((McpServer(SERVER, **fields),))
    toolbox.check()  # starts the server, as the validation of a recipe does
    env = MultiTurn(toolbox, time_limit=60.0)
    (rollout,) = play(env, [*texts, "done"])
    assert rollout.error == ""
    return [observation for observation, _ in rollout.turns][1:], rollout.reward_terms


@pytest.mark.slow
def test_tools_are_listed_with_their_schema_and_called():
    specs = {spec.name: spec for spec in McpServer(SERVER).tool_specs()}
    assert list(specs) == ["add", "fail", "hang", "end", "crash"]
    assert '"description": "The sum of two numbers."' in specs["add"].schema()
    (reply,), terms = replies(call("add", '{"a": 2, "b": 3}'))
    assert (reply, terms["tool_calls"]) == ("5", 1.0)


def test_a_tool_whose_schema_names_a_file_is_refused_before_any_call(monkeypatch, tmp_path):
    (tmp_path / "secret.json").write_text('"the secret"')
    schema = {"properties": {"a": {"$ref": (tmp_path / "secret.json").as_uri()}}}
    tool = SimpleNamespace(name="add", description="", input_schema=schema)
    connection = SimpleNamespace(list_tools=lambda: [tool])
    monkeypatch.setattr(mcp, "connection_of", lambda *key: connection)
    with pytest.raises(ConfigError, match=r"tool 'add' has a schema that cannot be used") as caught:
        McpServer(SERVER).check()
    assert "the secret" not in str(caught.value)


def test_errors_of_tools_and_of_arguments_are_replies():
    (raised, missing), terms = replies(call("fail", '{"reason": "too dark"}'), call("add"))
    assert raised.startswith("error: McpToolError: ")
    assert "too dark" in raised
    assert missing == 'error: arguments: add: "a" is a required property'
    assert (terms["tool_errors"], terms["arguments"]) == (1.0, 1.0)


@pytest.mark.slow
def test_a_call_that_hangs_is_an_error_after_its_time_limit():
    (reply,), _ = replies(call("hang"), call_time_limit=0.3, variables=(("OWN", "server"),))
    assert reply == "error: TimeoutError: no answer in 0.3 s"


@pytest.mark.slow
def test_a_server_that_ends_is_started_again(tmp_path):
    (reply,), _ = replies(call("end", f'{{"marker": "{tmp_path / "ended"}"}}'))
    assert reply.startswith("process ")


@pytest.mark.slow
def test_closing_the_connection_ends_the_process(tmp_path):
    connection = connection_of(SERVER)
    (tmp_path / "ended").touch()
    process = connection.call("end", {"marker": str(tmp_path / "ended")}, 60.0)
    connection.close()
    assert not Path("/proc", process.split()[-1]).exists()


@pytest.mark.slow
def test_a_call_that_ends_the_server_twice_is_an_error():
    (reply, after), _ = replies(call("crash"), call("add", '{"a": 1}'))
    assert reply == "error: McpToolError: the server ended during the call"
    assert after == "2"


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (McpServer("no-such-program"), "'no-such-program' does not start"),
        (McpServer(shlex.join((sys.executable, "-c", "raise SystemExit(4)"))), "does not start"),
        (McpServer(SERVER, tools=("ad",)), r"no 'ad'. Did you mean 'add'\?"),
    ],
)
def test_a_server_that_does_not_start_or_lacks_a_tool_is_refused(server, message):
    with pytest.raises(ConfigError, match=message):
        server.check()


def test_two_servers_with_a_tool_of_the_same_name_are_refused():
    with pytest.raises(ConfigError, match="no name twice"):
        Toolbox((McpServer(SERVER, tools=("add",)),) * 2).check()


def test_the_tools_of_a_server_are_listed_once():
    server = McpServer(SERVER)
    assert server.tool_specs() is server.tool_specs()


def test_a_missing_sdk_is_named_at_once(monkeypatch):
    monkeypatch.setattr(mcp_connection, "START_SECONDS", 5.0)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"The MCP SDK is not installed"):
        McpServer("no-such-program").check()


@pytest.mark.slow
def test_a_server_that_does_not_answer_at_its_start_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(mcp_connection, "START_SECONDS", 0.5)
    script = f"echo $$ > {shlex.quote(str(tmp_path / 'pid'))}; exec sleep 1000"
    with pytest.raises(ConfigError, match=r"does not answer: no answer in 0\.5 s"):
        McpServer(shlex.join(("/bin/sh", "-c", script))).check()
    process = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(process), 20)


@pytest.mark.slow
def test_a_server_that_no_longer_answers_is_started_again(monkeypatch, tmp_path):
    monkeypatch.setattr(mcp_connection, "CLOSE_SECONDS", 1.0)
    connection = connection_of(SERVER)
    process = connection.call("end", {"marker": str(Path(__file__))}, 60.0).split()[-1]
    os.kill(int(process), signal.SIGSTOP)
    with pytest.raises(TimeoutError):
        connection.call("add", {"a": 1}, 0.5)
    wait_until(lambda: not is_running(int(process)), 20)
    assert connection.call("add", {"a": 1}, 60.0) == "2"
