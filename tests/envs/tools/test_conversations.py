"""Conversations with tools in every format: ten scripted ones, and those with servers' tools."""

import shlex
import sqlite3
import sys
from contextlib import contextmanager

import pytest

from grupo.core.component import component
from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.tools import McpServer, Python, Sandbox, Sql, Toolbox
from grupo.envs.tools.backends.program import python_command
from grupo.envs.tools.backends.protocol import Launch
from grupo.envs.tools.formats import FORMATS
from tests.helpers.paths import ROOT
from tests.helpers.scripted_play import play
from tests.helpers.tool_call_texts import MALFORMED, with_thoughts, write_call, write_calls

NAMES = sorted(FORMATS)
TASK = Task("key", ({"role": "user", "content": "How many?"},))
DONE = "It is done."
NO_SUCH_TOOL = "error: unknown: there is no tool 'ad'. Did you mean 'add'?"


def add(a: int, b: int = 1) -> int:
    """The sum of two numbers."""
    if a > 99:
        raise ValueError("too large")
    return a + b


def megabyte() -> str:
    """A long text."""
    return "x" * (1 << 20)


def conversations(name):
    """Ten conversations: the policy's turns, and the beginnings of the results of each."""
    call = lambda *args, **kwargs: write_call(name, *args, **kwargs)  # noqa: E731
    text, reason = MALFORMED[name]
    towns = call("sql", query="SELECT name FROM towns ORDER BY name")
    return {
        "no call": ((), ()),
        "one call": ([call("add", a=2, b=3)], [["5"]]),
        "a query": ([towns], [["name\nLinz\nWels"]]),
        "two turns": ([call("add", a=2), towns], [["3"], ["name\nLinz"]]),
        "two calls in a turn": (
            [write_calls(name, ("add", {"a": 1}), ("add", {"a": 2}))],
            [["2", "3"]],
        ),
        "thoughts": ([with_thoughts(name, call("add", a=2))], [["3"]]),
        "an unknown tool": ([call("ad", a=2), call("add", a=2)], [[NO_SUCH_TOOL], ["3"]]),
        "unfit arguments": (
            [call("add", a="two"), call("add", b=2)],
            [["error: arguments: 'a' of add is"], ["error: arguments: add lacks 'a'"]],
        ),
        "a malformed call": ([text], [[f"error: malformed: {reason}"]]),
        "a failing tool and a megabyte": (
            [call("add", a=100), call("megabyte")],
            [["error: ValueError: too large"], ["x" * 100 + "\n[the first 100 of 1,048,576 char"]],
        ),
    }


TITLES = tuple(conversations("hermes"))


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    path = tmp_path_factory.mktemp("sql") / "towns.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE towns (name TEXT)")
        database.executemany("INSERT INTO towns VALUES (?)", [("Wels",), ("Linz",)])
    database.close()
    return str(path)


def results_of(env, turns, name):
    """The observations after these turns, each as the contents of its results, and the terms."""
    (rollout,) = play(env, [*turns, DONE], task=TASK)
    assert rollout.error == ""
    _, *observations = [observation for observation, _ in rollout.turns]
    return observations, rollout.reward_terms


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("title", TITLES)
def test_a_conversation_in_every_format_gets_its_results(name, title, towns):
    turns, expected = conversations(name)[title]
    toolbox = Toolbox(
        (add, Sql(towns), megabyte), format=name, described_by="template", max_result_chars=100
    )
    observations, terms = results_of(MultiTurn(toolbox, time_limit=60.0), turns, name)
    assert len(observations) == len(expected)
    for messages, results in zip(observations, expected, strict=True):
        contents = [message["content"] for message in messages]
        assert len(contents) == len(results)
        for content, result in zip(contents, results, strict=True):
            assert content.startswith(result)
    assert terms["done"] == 1
    assert terms["turns"] == len(turns) + 1


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].prompt])
def test_results_are_text_where_the_prompt_describes_the_tools(name):
    toolbox = Toolbox((add,), format=name, described_by="prompt")
    env = MultiTurn(toolbox, role="user")
    (observation,), terms = results_of(env, [write_call(name, "add", a=2)], name)
    (message,) = observation
    assert message == {"role": "user", "content": FORMATS[name].result("3")}
    assert terms["tool_calls"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_bad_call_is_counted_under_its_name(name, towns):
    toolbox = Toolbox((add, Sql(towns), megabyte), format=name, described_by="template")
    turns = [
        MALFORMED[name][0],
        write_call(name, "ad"),
        write_call(name, "add", a="x"),
        write_call(name, "add", a=100),
        write_call(name, "megabyte"),
        write_call(name, "add", a=1),
    ]
    _, terms = results_of(MultiTurn(toolbox, time_limit=60.0), turns, name)
    counted = ("malformed", "unknown", "arguments", "tool_errors", "truncated_results")
    assert [terms[count] for count in counted] == [1] * 5
    assert terms["tool_calls"] == 3


def test_a_result_is_a_message_with_the_name_and_an_identifier_of_its_call():
    toolbox = Toolbox((add,), format="mistral", described_by="template")
    session = toolbox()
    old = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}, "id": "VvvODy9mT"}]'
    session.step("[TOOL_CALLS]")
    for text, call_id in ((old, "VvvODy9mT"), (old.replace("VvvODy9mT", "x"), "000300000")):
        (message,) = session.step(text).observation
        content = {"role": "tool", "tool_call_id": call_id, "name": "add", "content": "2"}
        assert message == content


@component
class Unconfined:
    """A backend without a boundary, for programs of this file."""

    def check_machine(self):
        pass

    @contextmanager
    def launch(self, limits, packages=()):
        yield Launch(python_command(sys.executable, limits))

    def unavailable_limits(self):
        return ()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_programs_and_tools_of_servers_are_called_in_every_format(name, mcp_toolbox_tools):
    toolbox = Toolbox(mcp_toolbox_tools, format=name, described_by="template")
    turns = [
        write_call(name, "add", a=2, b=3),
        write_call(name, "fail", reason="too dark"),
        write_call(name, "add", a="two"),
        write_call(name, "python", code='print("so", 2 + 3)'),
    ]
    observations, terms = results_of(MultiTurn(toolbox, time_limit=60.0), turns, name)
    contents = [message["content"] for (message,) in observations]
    assert contents[0] == "5"
    assert contents[1].startswith("error: McpToolError")
    assert contents[2].startswith("error: arguments: add: ")
    assert contents[3] == "so 5"
    assert (terms["tool_calls"], terms["tool_errors"], terms["arguments"]) == (3, 1, 1)


@pytest.fixture(scope="module")
def mcp_toolbox_tools():
    pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")
    server = shlex.join((sys.executable, str(ROOT / "tests" / "helpers" / "mcp_server.py")))
    sandbox = Sandbox(time_limit=30.0, backend=Unconfined())
    return (McpServer(server, tools=("add", "fail"), call_time_limit=30.0), Python(sandbox))
