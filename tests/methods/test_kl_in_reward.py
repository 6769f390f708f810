from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.schedules import resolve_schedules
from grupo.methods.grpo import grpo
from grupo.methods.kl_in_reward import kl_in_reward
from grupo.testing.batches import make_batch, perturb_logp

SIGNALS = {"logp@ref": [[-1.5, -3.0], [-1.0, 9.0]]}  # k1 = 0.5 and 2; 0


def method_with_kl_coef(measured=()):
    return resolve_schedules(kl_in_reward(), 0.0, {"policy/kl_ref": measured})


def test_kl_penalty_is_subtracted_before_group_comparison():
    batch = make_batch([0, 0], reward=[1.0, 1.0], length=[2, 1], signals=SIGNALS)
    A = batch.with_advantage(method_with_kl_coef().advantage).advantage
    # r = 1 - 0.1 * 2.5 and 1: mean 0.875, standard deviation 0.25 / sqrt(2)
    a = 0.125 / (0.25 / 2**0.5 + 1e-6)
    assert A.flatten().tolist() == pytest.approx([-a, -a, a, 0.0])


def test_kl_coef_rises_while_kl_exceeds_target():
    assert method_with_kl_coef([0.04]).advantage.estimators[0].kl_coef == pytest.approx(
        0.1 * (1 + 0.1 * 0.2)
    )
    assert method_with_kl_coef([0.0, 0.0]).advantage.estimators[0].kl_coef == pytest.approx(
        0.1 * 0.98**2
    )
    assert method_with_kl_coef().advantage.estimators[0].kl_coef == 0.1


def test_kl_penalty_has_no_gradient():
    batch = make_batch([0], advantage=[1.0], signals={"logp@ref": [[-1.5]]})
    pi = perturb_logp(batch, [[0.0]])
    loss = method_with_kl_coef().loss(pi, batch)
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert (loss.item(), gradient.item()) == (-1.0, -1.0)
    k3 = exp(-0.5) + 0.5 - 1
    assert method_with_kl_coef().loss.metrics(pi, batch)["policy/kl_ref"].item() == pytest.approx(
        k3
    )


def test_policy_equal_to_reference_reduces_to_grpo():
    batch = make_batch([0, 0], reward=[1.0, 0.0])
    actual = batch.with_advantage(method_with_kl_coef().advantage).advantage
    assert actual.tolist() == batch.with_advantage(grpo().advantage).advantage.tolist()


def test_default_hyperparameters():
    assert kl_in_reward().controller_metric_names == {"policy/kl_ref"}
    assert kl_in_reward().requires.all_signals == {"logp@ref"}


def test_kl_coef_after_a_step_matches_verl():
    # verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, AdaptiveKLController(0.1, 0.02,
    # 80).update of 8 rollouts whose mean k1 is 0.45; verl measures k1 at sampling, a mean over
    # answers of means; grupo measures k3 at the update, a mean over tokens
    kl_coef = method_with_kl_coef([0.45]).advantage.estimators[0].kl_coef
    assert kl_coef == pytest.approx(0.102)


def test_step_has_4_epochs():
    assert kl_in_reward().updates == Updates(epochs=4)
