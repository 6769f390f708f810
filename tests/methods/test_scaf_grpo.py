"""Scaf-GRPO: one hinted success among seven failures, after warmup."""

from math import sqrt

import pytest

from grupo.core.schedules import resolve_schedules
from grupo.methods.scaf_grpo import scaf_grpo
from grupo.rollouts.samplers import GroupSampler, with_scaffold
from grupo.testing.batches import make_batch


def test_hinted_success_outweighs_seven_failures():
    method = scaf_grpo()
    batch = make_batch([0] * 8, reward=[1.0, *[0.0] * 7]).with_advantage(method.advantage)
    # mean 1/8, variance (49/64 + 7/64) / 7 = 1/8, std sqrt(1/8) = 0.3536
    right, wrong = (7 / 8) / sqrt(1 / 8), (-1 / 8) / sqrt(1 / 8)
    assert (round(right, 3), round(wrong, 4)) == (2.475, -0.3536)
    assert batch.advantage[:, 0].tolist() == pytest.approx([right, *[wrong] * 7], rel=1e-5)


def test_no_hints_during_warmup():
    def sampler(progress):
        return resolve_schedules(scaf_grpo(), progress).sampler

    assert sampler(0.14) == with_scaffold(GroupSampler(8), max_levels=0.0)
    assert sampler(0.15) == sampler(1.0) == with_scaffold(GroupSampler(8), max_levels=12.0)


def test_default_hyperparameters():
    assert scaf_grpo().requires.columns == {"hints"}
