"""Tools: what a policy is told of them, how its calls are answered, and what goes wrong."""

import asyncio
import json

import pytest

from grupo.core.errors import ConfigError
from grupo.core.interfaces import run_rollout
from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn
from grupo.envs.tools import Toolbox, tool_spec
from tests.helpers.scripted_play import Saying, played

TASK = Task("key", "What is 2 + 3?")


def add(a: int, b: float = 1.0) -> float:
    """The sum of two numbers."""
    return a + b


def divide(a: float, b: float) -> float:
    """A quotient."""
    return a / b


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def answered(text, *tools):
    """What the world says to a text, and what it counts."""
    heard = Toolbox(tools or (add, divide))().step(text)
    return heard.observation, dict(heard.counts)


def test_the_policy_is_told_of_the_tools_before_it_is_asked():
    told = Toolbox((add,))().reset(TASK)
    assert told.endswith(f"{TASK.prompt}")
    function = json.loads(told.split("<tools>\n")[1].split("\n</tools>")[0])["function"]
    assert (function["name"], function["description"]) == ("add", "The sum of two numbers.")
    properties = {"a": {"type": "integer"}, "b": {"type": "number"}}
    assert function["parameters"]["properties"] == properties
    assert function["parameters"]["required"] == ["a"]
    assert '<tool_call>{"name": ..., "arguments": {...}}</tool_call>' in told


def test_in_a_chat_the_tools_stand_in_the_systems_message():
    user = {"role": "user", "content": "Hi"}
    told = Toolbox((add,))().reset(Task("k", (user,)))
    assert [m["role"] for m in told] == ["system", "user"]
    told = Toolbox((add,))().reset(Task("k", ({"role": "system", "content": "Be brief."}, user)))
    assert [m["role"] for m in told] == ["system", "user"]
    assert told[0]["content"].startswith("Be brief.\n\n# Tools")


def test_a_call_is_answered_and_an_answer_without_one_is_the_end():
    act = Saying(f"I add. {call('add', a=2, b=3)}", "It is 5.")
    env = MultiTurn(Toolbox((add,)), role="tool")
    rollout = asyncio.run(run_rollout(TASK, env, act))
    assert act.heard[1] == ({"role": "tool", "content": "5.0"},)
    assert len(rollout.turns) == 2
    (rollout,) = played(env, [call("add", a=2, b=3), "5"], task=TASK)
    assert (
        rollout.reward_terms["tools"],
        rollout.reward_terms["over"],
        rollout.reward_terms["turns"],
    ) == (1, 1, 2)


def test_several_calls_are_answered_in_their_order():
    said, counts = answered(call("add", a=1) + " and " + call("divide", a=6, b=3))
    assert (said, counts) == ("2.0\n2.0", {"tools": 2})


@pytest.mark.parametrize(
    ("text", "said", "counts"),
    [
        (call("ad", a=1), "unknown: there is no tool 'ad'. Did you mean 'add'?", "unknown"),
        ("<tool_call>{</tool_call>", "malformed: not JSON: Expecting", "malformed"),
        ("<tool_call>[1]</tool_call>", "malformed: Allowed: {", "malformed"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "malformed: not JSON", "malformed"),
        ('<tool_call>{"name": 3}</tool_call>', "malformed: Allowed: {", "malformed"),
        (call("add", a=1)[:-3], "malformed: a call ends with </tool_call>", "malformed"),
        (call("add", a="1"), """arguments: 'a' of add is "1". Allowed: integer""", "arguments"),
        (call("add", a=True), "arguments: 'a' of add is true. Allowed: integer", "arguments"),
        (call("add"), "arguments: add lacks 'a'", "arguments"),
        (call("add", a=1, c=2), "arguments: add has no 'c'", "arguments"),
        ('<tool_call>{"name": "add", "arguments": 3}</tool_call>', "not 3", "arguments"),
        (call("divide", a=1, b=0), "ZeroDivisionError: float division by zero", "raised"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_in_one_line_and_counted(text, said, counts):
    answer, counted = answered(text)
    assert answer.startswith("error: ")
    assert said in answer
    assert "\n" not in answer
    assert counted == {counts: 1, **({"tools": 1} if counts == "raised" else {})}


def test_a_rollout_goes_on_after_a_mistake():
    (rollout,) = played(MultiTurn(Toolbox((add,))), [call("ad"), call("add", a=1), "2"], task=TASK)
    assert (rollout.error, rollout.reward_terms["unknown"], rollout.reward_terms["tools"]) == (
        "",
        1,
        1,
    )
    assert len(rollout.turns) == 3


def say(text: str) -> str:
    """The text again."""
    return text


def test_what_a_tool_says_is_cut_and_nothing_is_said_as_such():
    assert (
        Toolbox((say,), max_result_chars=5)().step(call("say", text="abcdefgh")).observation
        == "abcde"
    )
    assert answered(call("say", text=""), say)[0] == "(nothing)"


def untyped(text):
    """Nobody knows what it takes."""


def test_tools_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match=r"argument 'text' of untyped has no type of str, int"):
        Toolbox((untyped,))
    with pytest.raises(ConfigError, match=r"named \['add', 'add'\]"):
        Toolbox((add, add))
    with pytest.raises(ConfigError, match="at least one"):
        Toolbox(())
    assert tool_spec(add).required == {"a"}


def test_rollouts_with_tools_may_branch():
    async def work():
        env = MultiTurn(Toolbox((add,)))
        trunk = await run_rollout(TASK, env, Saying("2"))
        return await env.reply(TASK, trunk), await env.reply(TASK, Rollout())

    over, first = asyncio.run(work())
    assert over is None
    assert first.endswith(TASK.prompt)
