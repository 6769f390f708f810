from math import exp, sqrt

import pytest
import torch

from grupo.core.controllers import BangBang
from grupo.core.schedules import resolve_schedules
from grupo.methods.aepo import TemperedRolloutWeight, aepo
from grupo.testing.batches import make_batch, perturb_logp


def now(entropy=()):
    return resolve_schedules(aepo(), 0.5, {"policy/entropy": entropy})


def test_tempered_rollouts_that_are_good_among_themselves_count_1_and_the_others_nothing():
    batch = make_batch(
        group=[0] * 5, reward=[1.0, 0.0, 1.0, 0.0, 0.0], reward_terms={"temperature_scaled": [0, 0, 1, 1, 1]}
    )
    # own: +-1/2 over sqrt(1/2); tempered: 2/3, -1/3, -1/3: only the first is above 0.05
    A = 0.5 / (sqrt(0.5) + 1e-6)
    credited = now().advantage(batch.reward, batch)
    assert credited.tolist() == pytest.approx([A, -A, 1.0, 0.0, 0.0])


def test_an_advantage_of_a_twentieth_is_not_enough():
    batch = make_batch(group=[0] * 4, reward_terms={"temperature_scaled": [1.0] * 4})
    x = torch.tensor([0.9, -0.9, 0.04, 0.2], dtype=torch.float64)
    assert TemperedRolloutWeight(1.0)(x, batch).tolist() == [1.0, 0.0, 0.0, 1.0]


def test_it_is_hot_and_counts_all_while_entropy_is_low_and_is_cold_and_halved_above():
    assert (now([0.3]).sampler.temperature, now([0.7]).sampler.temperature) == (1.2, 0.8)
    assert (now([0.3]).advantage.estimators[1].tempered_coef, now([0.7]).advantage.estimators[1].tempered_coef) == (1.0, 0.5)
    assert BangBang(0.5, 1.2, 0.8).next_value([]) == 1.2
    assert BangBang(0.5, 1.2, 0.8).next_value([0.9, 0.5]) == 1.2


def test_tempered_rollouts_have_no_ratio_and_no_clip():
    batch = make_batch(group=[0, 0], advantage=[1.0, 1.0], reward_terms={"temperature_scaled": [0.0, 1.0]})
    pi = perturb_logp(batch, [[0.1], [0.5]])
    loss = now().loss(pi, batch)
    assert loss[:, 0].tolist() == pytest.approx([-exp(0.1), 0.5])  # -A log pi = 1 - 0.5
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient[:, 0].tolist() == pytest.approx([-exp(0.1), -1.0])


def test_the_defaults_are_the_authors():
    method = aepo()
    assert (method.sampler.inner.group_size, method.sampler.extra_rollouts) == (8, 2)  # a quarter more
    assert method.sampler.temperature == BangBang(0.5, 1.2, 0.8)
