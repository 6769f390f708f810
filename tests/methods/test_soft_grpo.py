"""SofT-GRPO: hand-computed ratio of a soft thought and training of toy models."""

from dataclasses import replace
from math import log

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.inference.soft_tokens import SoftThinkingConfig, soft_logp_and_entropy
from grupo.method import Method
from grupo.methods.soft_grpo import soft_grpo
from grupo.models.causal_lm import CausalLM
from grupo.models.soft_thinking_lm import SoftThinkingLM
from grupo.rollouts.evaluate import SuccessCriterion, evaluate
from grupo.testing.smoke.run import echo_recipe, negate
from grupo.training.learner import Learner


def test_soft_thought_has_token_like_ratio():
    # p = (.6, .4), noise (.5, -.2); then p = (.7, .3): -1.029 against -1.064
    score = torch.tensor([[log(0.6) + 0.5, log(0.4) - 0.2]])
    token = torch.tensor([[0, 1]])
    old, new = (
        soft_logp_and_entropy(torch.tensor([p]).log(), token, score)[0]
        for p in ((0.6, 0.4), (0.7, 0.3))
    )
    assert (new - old).exp().item() == pytest.approx(1.036, abs=1e-3)


def test_remaining_components_are_grpo_with_small_kl():
    loss = soft_grpo().loss
    assert "0.001 * KL" in repr(loss)
    assert soft_grpo().advantage == Method().advantage


def accuracies(method: Method, steps: int) -> tuple[float, float]:
    """Accuracy after two soft thoughts, before and after training."""
    plain = echo_recipe(method, max_steps=steps)
    assert isinstance(plain.policy, CausalLM)
    soft = SoftThinkingLM(
        replace(plain.policy, max_new_tokens=6),
        SoftThinkingConfig(max_soft_steps=2, end_token="=", top_k=4, top_p=1.0),
    )
    learner = Learner(plain.replace(policy=soft))

    def accuracy() -> float:
        options = {"num_attempts": 16, "success": SuccessCriterion("truth"), "key": 1}
        result = evaluate(learner.policy, learner.recipe.env, learner.tasks, **options)
        return result.sampled.value

    before = accuracy()
    for _ in range(steps):
        learner.step()
    return before, accuracy()


def test_step_trains_thoughts_and_tokens():
    plain = echo_recipe(soft_grpo(), max_steps=1)
    soft = SoftThinkingLM(
        replace(plain.policy, max_new_tokens=6),
        SoftThinkingConfig(max_soft_steps=2, end_token="=", top_k=4),
    )
    learner = Learner(plain.replace(policy=soft))
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = learner.step().metrics
    assert numbers["sampler_mismatch/logp_diff_max"] < 1e-4
    assert numbers["tokens/trained"] == numbers["tokens/generated"]
    moved = [not torch.equal(x, before[name]) for name, x in learner.policy.weights().items()]
    assert all(moved)


@pytest.mark.slow
def test_reward_rises_and_not_with_flipped_sign():
    method = soft_grpo()
    before, after = accuracies(method, 60)  # from 0.06 to 0.62 when this was written
    assert after > before + 0.3
    before, flipped = accuracies(method.replace(advantage=chain(method.advantage, negate)), 60)
    assert flipped < before + 0.05
