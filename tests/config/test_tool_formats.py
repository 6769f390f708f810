"""The format of tool calls in a recipe: chosen by the policy's chat template, or refused."""

import pytest

from grupo import CausalLM, Recipe
from grupo.config.tool_formats import tool_notes, with_tool_formats
from grupo.envs import MultiTurn, RewardTerm, SingleTurn
from grupo.envs.tools import ParsedCalls, Toolbox
from grupo.methods.grpo import grpo
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.rewards import ExactMatch
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import save_model

TEMPLATES = ROOT / "tests" / "helpers" / "chat_templates"
PLAIN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"


def add(a: int) -> int:
    """The sum."""
    return a


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Returns the folder of a model with the template of a family, or with a text as template."""

    def save(template):
        file = TEMPLATES / f"{template}.jinja"
        text = file.read_text() if file.is_file() else template
        folder = tmp_path_factory.mktemp("model")
        return str(save_model(folder, tokenizer_options={"chat_template": text}))

    return save


def recipe_of(policy, toolbox, **fields):
    tasks = ReasoningGym("chain_sum", size=4)
    return Recipe(policy, MultiTurn(toolbox, **fields), tasks, method=grpo())


def resolved(template, *, applied=True, role="", stop_strings=(), **fields):
    """The environment after the choice, for a policy with a template."""
    options = {"apply_chat_template": applied, "stop_strings": stop_strings}
    policy = CausalLM(template, max_new_tokens=8, **options)
    env = with_tool_formats(recipe_of(policy, Toolbox((add,), **fields), role=role)).env
    return env.env_factory.format, env.env_factory.described_by, env.role


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("qwen2_5", ("hermes", "template", "")),
        ("qwen3", ("hermes", "template", "")),
        ("smollm3", ("hermes", "template", "")),
        ("llama3", ("llama", "template", "")),
        ("mistral", ("mistral", "template", "")),
        ("gpt_oss", ("harmony", "template", "")),
        ("gemma3", ("gemma", "prompt", "user")),
        ("qwen3_coder", ("qwen3_coder", "template", "")),
        ("glm4", ("glm", "template", "")),
        ("deepseek_v3", ("deepseek", "prompt", "tool")),
        ("deepseek_v31", ("deepseek", "prompt", "tool")),
        ("functiongemma", ("functiongemma", "template", "")),
        ("phi4", ("phi4_mini", "prompt", "tool")),
        (PLAIN, ("hermes", "prompt", "user")),
    ],
)
def test_the_template_chooses_the_format_and_what_describes_the_tools(model, family, expected):
    assert resolved(model(family)) == expected


def test_plain_prompts_are_described_in_the_prompt(model):
    assert resolved(model("qwen3"), applied=False) == ("hermes", "prompt", "")
    assert resolved(model("mistral"), applied=False) == ("mistral", "template", "")


def test_values_of_a_recipe_stay(model):
    folder = model("qwen3")
    assert resolved(folder, format="pythonic") == ("pythonic", "prompt", "user")
    assert resolved(folder, described_by="prompt", role="tool") == ("hermes", "prompt", "tool")
    assert resolved(folder, applied=False, described_by="template")[:2] == ("hermes", "template")


def test_rewards_that_read_calls_get_the_same_format(model):
    policy = CausalLM(model("llama3"), max_new_tokens=8)
    rewards = (RewardTerm("parsed", ParsedCalls()),)
    recipe = with_tool_formats(recipe_of(policy, Toolbox((add,)), rewards=rewards))
    assert recipe.env.rewards == (RewardTerm("parsed", ParsedCalls("llama")),)
    assert with_tool_formats(recipe) == recipe


def test_a_recipe_without_tools_reads_no_model():
    recipe = Recipe(
        CausalLM("missing"),
        SingleTurn((RewardTerm("correct", ExactMatch()),)),
        ReasoningGym("chain_sum"),
    )
    assert with_tool_formats(recipe) is recipe


@pytest.mark.parametrize(
    ("family", "fields", "error"),
    [
        ("qwen3", {"format": "mistral"}, r"format: 'mistral', and the policy's chat template desc"),
        ("gemma3", {"described_by": "template"}, r"Allowed: 'auto'; or, with described_by='promp"),
        ("qwen3", {"format": "react"}, r"policy.stop_strings: \(\), and in the format 'react'"),
    ],
)
def test_a_format_that_the_policy_cannot_follow_is_refused(model, family, fields, error):
    with pytest.raises(ConfigError, match=error):
        resolved(model(family), **fields)


def test_react_needs_a_stop_string(model):
    expected = ("react", "prompt", "")
    assert resolved(model("qwen3"), format="react", stop_strings=("Observation:",)) == expected


def test_policies_with_different_formats_need_a_name(model):
    one, other = (CausalLM(model(name), max_new_tokens=8) for name in ("qwen3", "llama3"))
    policies = MultiPolicy(one, (RolePolicy("critic", other),))
    with pytest.raises(ConfigError, match=r"the policies' chat templates use hermes, llama"):
        with_tool_formats(recipe_of(policies, Toolbox((add,))))
    env = with_tool_formats(recipe_of(policies, Toolbox((add,), format="pythonic"))).env
    assert env.env_factory.described_by == "prompt"


def test_the_choice_is_described_in_a_line(model):
    policy = CausalLM(model("gpt_oss"), max_new_tokens=8)
    (line,) = tool_notes(with_tool_formats(recipe_of(policy, Toolbox((add,)))))
    assert line == "tools: calls in the format 'harmony', described by the chat template"
