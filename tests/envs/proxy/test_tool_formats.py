"""Tool calls of an agent with the client of OpenAI, in the format of every family of models."""

import json

import pytest

from grupo import CausalLM, Recipe
from grupo.config.tool_formats import tool_notes, with_tool_formats
from grupo.core.model_call import ModelCall
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv
from grupo.envs.proxy.calls import as_model_call
from grupo.envs.proxy.chat_request import parse_request
from grupo.envs.proxy.tool_rendering import rendering_of_template
from grupo.envs.tools.formats import FORMATS
from grupo.methods.grpo import grpo
from grupo.models.model_calls import encode_call
from grupo.models.tool_templates import tool_template
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError
from tests.helpers import agents
from tests.helpers.scripted_play import play
from tests.helpers.template_families import family_chat_tokenizer, tokenizer_options
from tests.helpers.tiny_lm import save_model
from tests.helpers.tool_call_texts import MALFORMED, with_thoughts, write_call, write_calls

NAMES = sorted(FORMATS)
TASK = Task("key", "2 + 3?", 5)
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))


def result(call, text):
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def conversation(seen):
    """An agent that gives every call the result "5", and records what it read."""

    def harness(task, address):
        messages = [agents.user(task.prompt)]
        while True:
            choice = agents.ask(address, messages, tools=[agents.ADD])
            calls = choice.message.tool_calls or []
            arguments = [(c.function.name, json.loads(c.function.arguments)) for c in calls]
            seen.append((choice.finish_reason, choice.message.content, arguments))
            if not calls:
                return
            messages += [
                choice.message.model_dump(exclude_none=True),
                *(result(call, "5") for call in calls),
            ]

    return harness


def converse(name, *texts, described_by="template"):
    """What the agent read of these answers, and the rollout."""
    seen = []
    env = ProxyEnv(conversation(seen), (LENGTH,), format=name, described_by=described_by)
    (rollout,) = play(env, texts, task=TASK)
    assert rollout.error == ""
    return seen, rollout


@pytest.mark.parametrize("name", NAMES)
def test_calls_of_every_format_arrive_as_openai_names_them(name):
    text = with_thoughts(name, write_call(name, "add", a=2))
    seen, rollout = converse(name, text, "It is 5.")
    (reason, _, calls), end = seen
    assert (reason, calls) == ("tool_calls", [("add", {"a": 2})])
    assert end == ("stop", "It is 5.", [])
    (prompt, (message,)) = (observation for observation, _ in rollout.turns)
    assert prompt[0]["tools"] == (agents.ADD,)
    assert (message["role"], message["name"], message["content"]) == ("tool", "add", "5")
    assert rollout.turns[1][0].continues == (0,)
    assert rollout.reward_terms["tool_calls"] == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_several_calls_of_an_answer_have_identifiers_of_their_own(name):
    text = write_calls(name, ("add", {"a": 1}), ("add", {"a": 2}))
    seen, rollout = converse(name, text, "Done.")
    assert seen[0][2] == [("add", {"a": 1}), ("add", {"a": 2})]
    first, second = rollout.turns[1][0]
    assert first["tool_call_id"] != second["tool_call_id"]
    assert {len(first["tool_call_id"]), len(second["tool_call_id"])} == {9}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "harmony"])
def test_a_malformed_call_is_a_text_of_which_nothing_is_lost(name):
    text = MALFORMED[name][0]
    seen, rollout = converse(name, text)
    assert seen == [("stop", text, [])]
    assert rollout.reward_terms["tool_calls"] == 0.0


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].prompt])
def test_results_are_text_of_the_user_where_the_prompt_describes_the_tools(name):
    text = write_call(name, "add", a=2)
    _, rollout = converse(name, text, "Done.", described_by="prompt")
    (system, _), (message,) = (observation for observation, _ in rollout.turns)
    assert '"name": "add"' in system["content"]
    tool_format = FORMATS[name]
    assert message == {"role": tool_format.result_role, "content": tool_format.result("5")}


@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].prompt])
def test_a_written_call_is_read_again(name):
    calls = [("add", {"a": 2, "b": [1, "x"], "c": "2"}), ("now", {})]
    types = {"a": {"type": "integer"}, "b": {"type": "array"}, "c": {"type": "string"}}
    schema = {"function": {"parameters": {"properties": types}}}
    found = FORMATS[name].parse(FORMATS[name].write(calls))
    convert = FORMATS[name].convert
    assert [(call.name, convert(call.arguments, schema)) for call in found] == calls


def test_an_answer_of_gpt_oss_has_its_final_text_alone():
    thought = "<|channel|>analysis<|message|>I add.<|end|><|start|>assistant"
    seen, _ = converse("harmony", f"{thought}<|channel|>final<|message|>It is 5.")
    assert seen == [("stop", "It is 5.", [])]


def body_with_history():
    """The body of a request whose history holds a call that the policy did not generate."""
    function = {"name": "add", "arguments": '{"a": 2}'}
    call = {"id": "call_of_another_model", "type": "function", "function": function}
    return {
        "messages": [
            agents.user("2 + 3?"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "5"},
        ],
        "tools": [agents.ADD],
    }


@pytest.mark.slow  # a template is first tried in a process of its own
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("qwen2_5", "hermes"),
        ("qwen3", "hermes"),
        ("llama3", "llama"),
        ("mistral", "mistral"),
        ("gpt_oss", "harmony"),
        ("gemma3", "gemma"),
        ("phi4", "phi4_mini"),
        ("qwen3_coder", "qwen3_coder"),
        ("glm4", "glm"),
        ("deepseek_v3", "deepseek"),
        ("deepseek_v31", "deepseek"),
        ("functiongemma", "functiongemma"),
    ],
)
def test_a_history_with_calls_is_rendered_in_the_form_of_the_family(family, name):
    tokenizer = family_chat_tokenizer(family)
    rendering = rendering_of_template(tool_template(tokenizer.tokenizer))
    assert rendering.tool_format.name == name
    call = as_model_call(parse_request(body_with_history()), rendering)
    assert isinstance(call, ModelCall)
    text = tokenizer.tokenizer.decode(encode_call(tokenizer, Rollout(), call).tokens)
    before, _, after = text.partition("2 + 3?")
    assert "add" in before + after
    assert after.count("add") >= 1  # the call
    assert "5" in after.rpartition("add")[2]  # its result


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Returns the folder of a model with the template of a family."""

    def save(family):
        folder = tmp_path_factory.mktemp("model")
        return str(save_model(folder, tokenizer_options=tokenizer_options(family)))

    return save


def resolved(folder, **fields):
    policy = CausalLM(folder, max_new_tokens=8)
    env = ProxyEnv(agents.ask_once, **fields)
    return with_tool_formats(Recipe(policy, env, ReasoningGym("chain_sum", size=4), method=grpo()))


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("qwen3", ("hermes", "template")),
        ("llama3", ("llama", "template")),
        ("mistral", ("mistral", "template")),
        ("gpt_oss", ("harmony", "template")),
        ("gemma3", ("gemma", "prompt")),
        ("phi4", ("phi4_mini", "prompt")),
        ("glm4", ("glm", "template")),
        ("deepseek_v31", ("deepseek", "prompt")),
    ],
)
def test_a_run_takes_the_format_of_the_chat_template(model, family, expected):
    recipe = resolved(model(family))
    assert (recipe.env.format, recipe.env.described_by) == expected
    assert next(tool_notes(recipe)).startswith(f"tools: calls in the format {expected[0]!r}")


def test_a_format_that_the_template_cannot_serve_is_refused(model):
    with pytest.raises(ConfigError, match="format: 'mistral', and the policy's chat template"):
        resolved(model("qwen3"), format="mistral")
    with pytest.raises(ConfigError, match="described_by: 'prompt', and only a chat template"):
        ProxyEnv(agents.ask_once, format="harmony", described_by="prompt")
