"""SmolLM2 behind the API: an agent with a function tool, in exact tokens and probabilities."""

import json

import pytest
import torch

from grupo import CausalLM, Recipe
from grupo.config.tool_formats import with_tool_formats
from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv
from grupo.envs.tools.formats import FORMATS
from grupo.inference.sampling_params import Sampling
from grupo.methods.grpo import grpo
from grupo.models.context import context_tokens
from grupo.models.pretrained.smollm2 import smollm2
from grupo.rollouts.evaluate import run_rollouts
from grupo.tasks import ReasoningGym
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.agents import client_of, user
from tests.helpers.paths import ROOT
from tests.helpers.user_home import USER_HOME

pytestmark = pytest.mark.real

TEMPLATE = ROOT / "recipes" / "agents" / "smollm2_tools.jinja"
INTEGER = {"type": "integer"}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "The sum of two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": INTEGER, "b": INTEGER},
            "required": ["a", "b"],
        },
    },
}
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))


@pytest.fixture(scope="module", autouse=True)
def cache_of_the_user():
    """The model is where `make real-model` put it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRUPO_HOME", USER_HOME)
        try:
            smollm2()
        except ConfigError as error:
            pytest.skip(str(error))
        yield


def example(a, b):
    """A question and a call of `add`; without examples the model calls no tool."""
    call = f'<tool_call>[\n{{"name": "add", "arguments": {{"a": {a}, "b": {b}}}}}\n]</tool_call>'
    return [user(f"What is {a} + {b}?"), {"role": "assistant", "content": call}]


def agent(task, address):
    """Answers a question with the tool; returns 1 if the answer has the sum."""
    messages = [*example(12, 30), *example(7, 51), *example(44, 5), user(task.prompt)]
    with client_of(address) as client:
        for _ in range(3):
            choice = client.chat.completions.create(
                model=address.model, messages=messages, tools=[ADD]
            ).choices[0]
            if not choice.message.tool_calls:
                return float(str(task.reference_answer) in choice.message.content)
            messages.append(choice.message.model_dump(exclude_none=True))
            for call in choice.message.tool_calls:
                result = str(sum(json.loads(call.function.arguments).values()))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return 0.0


@pytest.mark.parametrize(
    ("template", "described_by"), [(str(TEMPLATE), "template"), ("", "prompt")]
)
def test_an_episode_with_a_tool_has_exact_tokens_and_probabilities(template, described_by):
    policy = CausalLM(
        "smollm2",
        max_new_tokens=48,
        apply_chat_template=True,
        chat_template=template,
        sampling=Sampling(temperature=0.3),
    )
    recipe = Recipe(policy, ProxyEnv(agent), ReasoningGym("chain_sum", size=4), method=grpo())
    env = with_tool_formats(recipe).env
    assert (env.format, env.described_by) == ("hermes", described_by)
    built = policy.build()
    (group,) = run_rollouts(built.actor(0), env, [Task("k", "What is 25 + 13?", 38)], 1)
    (rollout,) = group.rollouts
    assert rollout.error == ""
    first, second = (response for _, response in rollout.turns[:2])
    (call,) = FORMATS["hermes"].parse(first.text)
    assert (call.name, call.arguments) == ("add", {"a": 25, "b": 13})
    assert rollout.reward_terms["tool_calls"] >= 1.0
    assert len(rollout.contexts) == 1  # each call continues the tokens of the one before it
    tokenizer = built.chat_tokenizer.tokenizer
    assert "38" in tokenizer.decode(second.observation)
    assert context_tokens(rollout)[len(first.observation) :][: len(first.items)] == first.items
    batch = collate([group], built.encode)
    with torch.no_grad():
        logp = built.signals(batch).logp
    assert (logp - batch.old_logp)[batch.mask].abs().max() < 1e-3
    assert batch.old_logp[batch.mask].min() < -0.01  # sampled, and not certain
