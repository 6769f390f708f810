from math import exp, sqrt

import pytest
import torch

from grupo.algo.aggregation import NormalisedAggregation, TopEntropyMask
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.minibatches import Updates
from grupo.methods.forking_tokens import forking_tokens
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner

ENTROPY = [[0.1, 2.0, 0.3], [1.5, 0.05, 9.0]]  # 9: padding


def test_only_highest_entropy_tokens_have_gradient():
    method = forking_tokens(max_length=20, overlong_buffer=10, top_entropy_fraction=0.4)  # 2 of 5
    batch = make_batch([0, 0], [1.0, 0.0], length=[3, 2], signals={"entropy": ENTROPY})
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.1] * 3] * 2)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    A, R = 0.5 / (sqrt(0.5) + 1e-6), exp(0.1)
    assert loss.item() == pytest.approx((-R * A + R * A) / 2, abs=1e-12)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    expected = [0.0, -R * A / 2, 0.0, R * A / 2, 0.0]  # divided by both selected tokens
    assert gradient[batch.mask].tolist() == pytest.approx(expected)


def test_remaining_components_match_dapo():
    paper = forking_tokens(max_length=20_480, overlong_buffer=4_096)
    assert paper.aggregation == NormalisedAggregation(TopEntropyMask(0.2))
    assert (paper.loss.clip_low, paper.loss.clip_high) == (0.2, 0.28)
    assert paper.filter is keep_nonzero_std
    assert paper.requires.all_signals == {"entropy"}
    assert paper.curriculum == DynamicSampling(ShuffledTasks(), 10)
    assert paper.updates == Updates(minibatches=16)


@pytest.mark.slow
def test_dropped_groups_are_refilled():
    recipe = echo_recipe(forking_tokens(max_length=4, overlong_buffer=2), max_steps=1)
    result = Learner(recipe.replace(method=recipe.method.replace(sampler=GroupSampler(2)))).step()
    assert result.metrics["groups/sampled"] > 8 == result.metrics["groups/trained"]
    assert all(group.has_reward_variance for group in result.collected.kept_groups)
