"""Turn strategies that act inside the model, with a tiny language model and policies without it."""

from dataclasses import replace

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.interfaces import single_response
from grupo.core.types import Rollout
from grupo.inference.soft_tokens import SoftThinkingConfig
from grupo.inference.vllm import Vllm
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.models.vision_lm import VisionLM
from grupo.rollouts.turns import GroupThink, SteeredEntropy, Vote
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from grupo.util.event_loop import run_coroutine as run
from tests.helpers import tiny_masked_lm
from tests.helpers.tiny_lm import CONTEXT, build_cached

QUESTION = "Well?"
STRATEGIES = (GroupThink(2), SteeredEntropy())


def recipe_of(policy):
    """A recipe whose policy is checked."""
    return RECIPE.replace(policy=policy)


def items(rollout):
    return [item for _, response in rollout.turns for item in response.items]


def test_one_thinker_without_a_start_answers_as_the_policy_does(llama):
    policy = build_cached(llama)
    for key in range(5):
        plain = run(single_response(policy.actor(key), Rollout(), QUESTION))
        alone = run(GroupThink(1, "")(policy.actor(key), Rollout(), QUESTION))
        assert items(alone) == items(plain)
        assert alone.text == plain.text


def test_thinkers_write_their_own_texts_after_their_starts(llama):
    policy = build_cached(llama)
    actor = policy.actor(1).with_stop(max_new_tokens=5)
    rollout = run(GroupThink(3, "<{number}>")(actor, Rollout(), QUESTION))
    assert all(f"<{i}>" in rollout.text for i in (1, 2, 3))
    assert rollout.text == policy.chat_tokenizer.decode(items(rollout))
    later = run(single_response(actor, rollout, "And?"))  # another turn reads all
    assert later.last_response.items


def test_strategies_nest_in_others(llama):
    policy = build_cached(llama)
    for strategy in STRATEGIES:
        rollout = run(Vote(2, inner=strategy)(policy.actor(1), Rollout(), QUESTION))
        assert rollout.last_response.items


def test_a_full_context_has_an_empty_response(llama):
    policy = build_cached(llama)
    for strategy in STRATEGIES:
        rollout = run(strategy(policy.actor(1), Rollout(), "x" * CONTEXT))
        assert rollout.last_response.items == ()


def test_other_policies_raise_config_errors_when_they_are_asked(llama, tmp_path):
    soft = SoftThinkingLM(
        replace(llama, max_new_tokens=8), SoftThinkingConfig(max_soft_steps=3, end_token="!")
    ).build()
    masked = MaskedDiffusion(str(tiny_masked_lm.save_model(tmp_path)), max_new_tokens=7).build()
    for policy, name in ((soft, "a soft-thinking model"), (masked, "a masked diffusion model")):
        for strategy in STRATEGIES:
            with pytest.raises(ConfigError, match=f"inside the model, which {name} does not all"):
                run(strategy(policy.actor(3), Rollout(), "Hi"))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=("GroupThink", "SteeredEntropy"))
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda llama: replace(llama, engine=Vllm()), "generates by a vLLM server"),
        (lambda llama: VisionLM(llama.model), "reads pictures or sound"),
        (lambda llama: SoftThinkingLM(llama), "is a SoftThinkingLM, no causal language model"),
        (
            lambda llama: MultiPolicy(
                replace(llama, engine=Vllm()), (RolePolicy("critic", llama),)
            ),
            "generates by a vLLM server",
        ),
    ],
    ids=("vllm", "pictures", "soft", "several"),
)
def test_other_policies_are_refused_before_any_work(llama, strategy, make, problem):
    name = type(strategy).__name__
    with pytest.raises(ConfigError, match=f"^strategy: {name} acts inside .*{problem}. Allowed:"):
        check_strategy("strategy", Vote(2, inner=strategy), recipe_of(make(llama)))


def test_a_plain_policy_is_accepted_and_blocks_beyond_the_context_are_not(llama):
    for strategy in STRATEGIES:
        check_strategy("strategy", strategy, recipe_of(llama))
    # 4 blocks of 16 tokens in a context of 64
    with pytest.raises(ConfigError, match=r"blocks of 16 tokens, 64 in all; .* context has 64"):
        check_strategy("strategy", GroupThink(4), recipe_of(llama))
