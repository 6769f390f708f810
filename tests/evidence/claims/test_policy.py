"""Signals of the linear policy against formulas."""

import numpy as np
import pytest
import torch

from grupo.evidence.claims.claim import Arm, Setting
from grupo.evidence.claims.environments import Corridor, ManyModes
from grupo.evidence.claims.train import TabularRun

MODES = Setting("modes", "", ManyModes(num_tasks=2, num_items=3), rollouts_per_step=16)
TURNS = Setting("turns", "", Corridor(num_tasks=2, num_states=2), rollouts_per_step=16)


def batch_of(setting, method):
    run = TabularRun(setting, Arm(method), seed=2)
    for _ in range(3):
        run.step()
    _, kept = run.sampled_and_kept_groups(run.method)
    return run, run.build_batch(run.method, kept)


@pytest.mark.parametrize("setting", [MODES, TURNS], ids=lambda setting: setting.name)
def test_signals_are_those_of_the_cells_distribution(setting):
    run, batch = batch_of(setting, "grpo()")
    names = ("logp", "entropy", "self_certainty", "collision", "reverse_kl@ref")
    signals = run.policy.signals(batch, names)
    policy, env = run.policy, run.env
    logits = env.prior + policy.table[policy.own].detach().numpy()
    logits = logits + env.common @ policy.weight.detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    q = np.exp(env.prior) / np.exp(env.prior).sum(1, keepdims=True)
    table = {
        "entropy": -(p * np.log(p)).sum(1),
        "self_certainty": -np.log(p).mean(1) - np.log(p.shape[1]),
        "collision": (p**2).sum(1),
        "reverse_kl@ref": (p * np.log(p / q)).sum(1),
    }
    cell = batch.signals["step/cell"].long().numpy()
    item = batch.signals["step/item"].long().numpy()
    mask = batch.mask.numpy()
    assert signals.logp.detach().numpy()[mask] == pytest.approx(
        np.log(p)[cell, item][mask], abs=1e-5
    )
    for name, values in table.items():
        assert signals[name].detach().numpy()[mask] == pytest.approx(values[cell][mask], abs=1e-5)
        assert not signals[name].detach().numpy()[~mask].any()


def test_a_value_head_learns_from_the_policys_features_without_changing_the_policy():
    run, batch = batch_of(TURNS, "ppo(group_size=8)")
    values = run.policy.signals(batch, ("value",))["value"]
    assert values[batch.mask].std() > 0
    values.sum().backward()
    assert run.policy.table.grad is None or not run.policy.table.grad.any()
    assert any(parameter.grad is not None for parameter in run.policy.heads.parameters())


def test_moving_towards_another_policy_interpolates_all_parameters():
    run, _ = batch_of(MODES, "grpo()")
    target = [parameter.detach().clone() for parameter in run.policy.parameters()]
    run.reference.move_towards(run.policy, 0.25)
    for parameter, other in zip(run.reference.parameters(), target, strict=True):
        assert torch.allclose(parameter, 0.25 * other)
