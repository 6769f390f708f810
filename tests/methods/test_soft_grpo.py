"""SofT-GRPO: the ratio of a thought by hand, and models that learn to think."""

from dataclasses import replace
from math import log

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.inference.soft_tokens import Thoughts, likelihood
from grupo.method import Method
from grupo.methods.soft_grpo import soft_grpo
from grupo.models.causal_lm import CausalLM
from grupo.models.soft_thinking_lm import SoftLM
from grupo.rollouts.evaluate import Solved, evaluate
from grupo.testing.smoke.run import negative, recipe
from grupo.training.learner import Learner


def test_a_thought_has_a_ratio_like_any_token():
    # p = (.6, .4), noise (.5, -.2); then p = (.7, .3): -1.029 against -1.064
    score = torch.tensor([[log(0.6) + 0.5, log(0.4) - 0.2]])
    token = torch.tensor([[0, 1]])
    old, new = (
        likelihood(torch.tensor([p]).log(), token, score)[0] for p in ((0.6, 0.4), (0.7, 0.3))
    )
    assert (new - old).exp().item() == pytest.approx(1.036, abs=1e-3)


def test_the_rest_is_grpo_with_a_little_kl():
    loss = soft_grpo().loss
    assert "0.001 * KL" in repr(loss)
    assert soft_grpo().credit == Method().credit


def trained(method: Method, steps: int) -> tuple[float, float]:
    """How often the truth is said after two thoughts, before and after training."""
    plain = recipe(method, steps=steps)
    assert isinstance(plain.policy, CausalLM)
    soft = SoftLM(replace(plain.policy, limit=6), Thoughts(limit=2, end="=", kept=4, top_p=1.0))
    learner = Learner(plain.but(policy=soft))

    def truth() -> float:
        asked = {"attempts": 16, "solved": Solved("truth"), "key": 1}
        found = evaluate(learner.policy, learner.recipe.env, learner.tasks, **asked)
        return found.sampled.value

    before = truth()
    for _ in range(steps):
        learner.step()
    return before, truth()


def test_a_step_trains_thoughts_and_tokens():
    plain = recipe(soft_grpo(), steps=1)
    soft = SoftLM(replace(plain.policy, limit=6), Thoughts(limit=2, end="=", kept=4))
    learner = Learner(plain.but(policy=soft))
    before = {name: x.clone() for name, x in learner.policy.weights().items()}
    numbers = learner.step().numbers
    assert numbers["mismatch/max"] < 1e-4
    assert numbers["tokens/learned"] == numbers["tokens/sampled"]
    moved = [not torch.equal(x, before[name]) for name, x in learner.policy.weights().items()]
    assert all(moved)


@pytest.mark.slow
def test_its_reward_rises_and_with_the_sign_flipped_it_does_not():
    method = soft_grpo()
    before, after = trained(method, 60)  # from 0.06 to 0.62 when this was written
    assert after > before + 0.3
    before, turned = trained(method.but(credit=chain(method.credit, negative)), 60)
    assert turned < before + 0.05
