from math import exp, sqrt

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.controllers import BangBang
from grupo.core.schedules import resolve_schedules
from grupo.methods.aepo import (
    IsTempered,
    IsUntempered,
    TemperedRolloutWeight,
    aepo,
    chosen_token_mean,
)
from grupo.testing.batches import make_batch, perturb_logp


def method_at(entropy=()):
    return resolve_schedules(aepo(), 0.5, {"policy/entropy": entropy})


def test_good_tempered_rollouts_have_weight_1_and_other_tempered_ones_0():
    batch = make_batch(
        group=[0] * 5,
        reward=[1.0, 0.0, 1.0, 0.0, 0.0],
        reward_terms={"temperature_scaled": [0, 0, 1, 1, 1]},
    )
    # own: +-1/2 over sqrt(1/2); tempered: 2/3, -1/3, -1/3: only the first is above 0.05
    A = 0.5 / (sqrt(0.5) + 1e-6)
    advantage = method_at().advantage(batch.reward, batch)
    assert advantage.tolist() == pytest.approx([A, -A, 1.0, 0.0, 0.0])


def test_advantage_of_0_05_is_below_the_threshold():
    batch = make_batch(group=[0] * 4, reward_terms={"temperature_scaled": [1.0] * 4})
    x = torch.tensor([0.9, -0.9, 0.04, 0.2], dtype=torch.float64)
    assert TemperedRolloutWeight(1.0)(x, batch).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_temperature_is_high_below_the_target_entropy_and_low_above():
    assert (method_at([0.3]).sampler.temperature, method_at([0.7]).sampler.temperature) == (
        1.2,
        0.8,
    )
    assert (
        method_at([0.3]).advantage.estimators[1].tempered_coef,
        method_at([0.7]).advantage.estimators[1].tempered_coef,
    ) == (1.0, 0.5)
    assert BangBang(0.5, 1.2, 0.8).next_value([]) == 1.2
    assert BangBang(0.5, 1.2, 0.8).next_value([0.9, 0.5]) == 1.2


def test_tempered_rollouts_use_reinforce_without_ratio():
    batch = make_batch(
        group=[0, 0], advantage=[1.0, 1.0], reward_terms={"temperature_scaled": [0.0, 1.0]}
    )
    pi = perturb_logp(batch, [[0.1], [0.5]])
    loss = method_at().loss(pi, batch)
    assert loss[:, 0].tolist() == pytest.approx([-exp(0.1), 0.5])  # -A log pi = 1 - 0.5
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient[:, 0].tolist() == pytest.approx([-exp(0.1), -1.0])


def test_tokens_of_tempered_rollouts_without_reward_do_not_count():
    batch = make_batch(
        group=[0] * 4,
        length=[1, 2, 2, 1],
        advantage=[0.0, -1.0, 0.0, 1.0],
        reward_terms={"temperature_scaled": [0.0, 0.0, 1.0, 1.0]},
    )
    # 1 + 2 tokens of the usual rollouts, also where A = 0, and 1 of the good tempered one
    assert aepo().aggregation is chosen_token_mean
    assert chosen_token_mean(batch).tolist() == [[0.25, 0], [0.25, 0.25], [0, 0], [0.25, 0]]


def test_masks_declare_the_reward_term_that_they_read():
    for mask in (IsTempered(), IsUntempered()):
        assert mask.requires.reward_terms == {"temperature_scaled"}


def test_defaults_are_the_authors():
    method = aepo()
    assert (method.sampler.inner.group_size, method.sampler.extra_rollouts) == (
        5,
        2,
    )
    assert method.sampler.temperature == BangBang(0.5, 1.2, 0.8)


def test_update_plan_is_the_released_one():
    assert aepo().updates == Updates(minibatches=4)
