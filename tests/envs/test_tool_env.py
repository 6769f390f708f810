"""Tools: their description in the prompt, the results of calls, and malformed calls."""

import asyncio
import json

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.types import Rollout, Task
from grupo.envs import MultiTurn
from grupo.envs.tools import Toolbox, tool_spec
from grupo.util.errors import ConfigError
from tests.helpers.scripted_play import TextActor, play

TASK = Task("key", "What is 2 + 3?")


def add(a: int, b: float = 1.0) -> float:
    """The sum of two numbers."""
    return a + b


def divide(a: float, b: float) -> float:
    """A quotient."""
    return a / b


def call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def step(text, *tools):
    """The observation after a text, and the counts of calls."""
    result = Toolbox(tools or (add, divide))().step(text)
    return result.observation, dict(result.counts)


def test_the_first_observation_describes_the_tools_before_the_prompt():
    observation = Toolbox((add,))().reset(TASK)
    assert observation.endswith(f"{TASK.prompt}")
    schema = observation.split("<tools>\n")[1].split("\n</tools>")[0]
    function = json.loads(schema)["function"]
    assert (function["name"], function["description"]) == ("add", "The sum of two numbers.")
    properties = {"a": {"type": "integer"}, "b": {"type": "number"}}
    assert function["parameters"]["properties"] == properties
    assert function["parameters"]["required"] == ["a"]
    assert '<tool_call>{"name": ..., "arguments": {...}}</tool_call>' in observation


def test_in_a_chat_the_system_message_describes_the_tools():
    user = {"role": "user", "content": "Hi"}
    chat = Toolbox((add,))().reset(Task("k", (user,)))
    assert [message["role"] for message in chat] == ["system", "user"]
    system = {"role": "system", "content": "Be brief."}
    chat = Toolbox((add,))().reset(Task("k", (system, user)))
    assert [message["role"] for message in chat] == ["system", "user"]
    assert chat[0]["content"].startswith("Be brief.\n\n# Tools")


def test_a_call_gets_its_result_and_a_text_without_a_call_ends_the_rollout():
    actor = TextActor(f"I add. {call('add', a=2, b=3)}", "It is 5.")
    env = MultiTurn(Toolbox((add,)), role="tool")
    rollout = asyncio.run(run_rollout(TASK, env.open(), actor))
    assert actor.observations[1] == ({"role": "tool", "content": "5.0"},)
    assert len(rollout.turns) == 2
    (rollout,) = play(env, [call("add", a=2, b=3), "5"], task=TASK)
    terms = rollout.reward_terms
    assert (terms["tool_calls"], terms["done"], terms["turns"]) == (1, 1, 2)


def test_several_calls_get_their_results_in_order():
    observation, counts = step(call("add", a=1) + " and " + call("divide", a=6, b=3))
    assert (observation, counts) == ("2.0\n2.0", {"tool_calls": 2})


@pytest.mark.parametrize(
    ("text", "message", "term"),
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
        (call("divide", a=1, b=0), "ZeroDivisionError: float division by zero", "tool_errors"),
    ],
)
def test_an_invalid_call_gets_one_line_and_is_counted(text, message, term):
    observation, counts = step(text)
    assert observation.startswith("error: ")
    assert message in observation
    assert "\n" not in observation
    ran = {"tool_calls": 1} if term == "tool_errors" else {}
    assert counts == {term: 1, **ran}


def test_a_rollout_continues_after_an_invalid_call():
    env = MultiTurn(Toolbox((add,)))
    (rollout,) = play(env, [call("ad"), call("add", a=1), "2"], task=TASK)
    assert rollout.error == ""
    assert (rollout.reward_terms["unknown"], rollout.reward_terms["tool_calls"]) == (1, 1)
    assert len(rollout.turns) == 3


def echo(text: str) -> str:
    """The text again."""
    return text


def test_a_long_result_is_truncated_and_an_empty_one_is_replaced():
    result = Toolbox((echo,), max_result_chars=5)().step(call("echo", text="abcdefgh"))
    assert result.observation == "abcde\n[the first 5 of 8 characters]"
    assert result.counts["truncated_results"] == 1
    assert step(call("echo", text=""), echo)[0] == "(nothing)"


def test_the_chat_template_is_given_the_schemas_where_it_describes_the_tools():
    toolbox = Toolbox((add,), format="mistral")
    (message,) = toolbox().reset(TASK)
    assert (message["role"], message["content"]) == ("user", TASK.prompt)
    (schema,) = message["tools"]
    assert schema["function"]["name"] == "add"


def test_only_a_template_describes_tools_in_formats_of_special_tokens():
    with pytest.raises(ConfigError, match=r"format 'harmony'. Allowed: 'template', or the formats"):
        Toolbox((add,), format="harmony", described_by="prompt")
    with pytest.raises(ConfigError, match=r"'mistrl'.*mistral"):
        Toolbox((add,), format="mistrl")


def untyped(text):
    """An argument without a type."""


def test_invalid_tools_are_config_errors():
    with pytest.raises(ConfigError, match=r"argument 'text' of untyped has no type of str, int"):
        Toolbox((untyped,))
    with pytest.raises(ConfigError, match=r"named \['add', 'add'\]"):
        Toolbox((add, add))
    with pytest.raises(ConfigError, match="at least one"):
        Toolbox(())
    assert tool_spec(add).required == {"a"}


def test_rollouts_with_tools_may_branch():
    async def work():
        env = MultiTurn(Toolbox((add,))).open()
        trunk = await run_rollout(TASK, env, TextActor("2"))
        return await env.reply(TASK, trunk), await env.reply(TASK, Rollout())

    last, first = asyncio.run(work())
    assert last is None
    assert first.endswith(TASK.prompt)
