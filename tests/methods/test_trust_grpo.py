"""Trust-GRPO: two correct and two wrong rollouts, with a reliable and an unreliable judge."""

from math import exp

import pytest

from grupo.core.schedules import resolve_schedules
from grupo.methods.trust_grpo import TrustWeightedReward, trust_grpo
from grupo.testing.batches import make_batch


def rewards(correct, thinking, weight=0.3, group=None):
    batch = make_batch(
        group=group or [0] * len(correct), reward_terms={"correct": correct, "thinking": thinking}
    )
    return TrustWeightedReward(weight)(batch.reward, batch).tolist()


def test_judge_that_prefers_wrong_rollouts_has_lower_trust():
    # trust e^(0.2 - 0.8): 0.3 x 0.5488 x 0.2 and x 0.8
    r = rewards([1.0, 1.0, 0.0, 0.0], [0.2, 0.2, 0.8, 0.8])
    assert r == pytest.approx([1 + 0.06 * exp(-0.6)] * 2 + [0.24 * exp(-0.6)] * 2)
    assert r == pytest.approx([1.0329, 1.0329, 0.1317, 0.1317], abs=1e-4)


def test_judge_that_prefers_correct_rollouts_has_full_trust():
    r = rewards([1.0, 1.0, 0.0, 0.0], [0.8, 0.8, 0.2, 0.2])
    assert r == pytest.approx([1.24, 1.24, 0.06, 0.06])


def test_uniform_group_has_no_gap():
    assert rewards([0.0, 0.0], [0.5, 1.0]) == pytest.approx([0.15, 0.3])
    assert rewards([1.0, 1.0], [0.5, 1.0]) == pytest.approx([1.15, 1.3])


def test_trust_is_computed_per_group():
    r = rewards([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], group=[0, 0, 1, 1])
    assert r == pytest.approx([1.0, 0.3 * exp(-1), 1.3, 0.0])


def test_thinking_reward_decays():
    weights = [
        resolve_schedules(trust_grpo(), p).advantage.estimators[0].thinking_coef
        for p in (0.0, 0.5, 1.0)
    ]
    assert weights == pytest.approx([0.3, 0.3 * exp(-0.5), 0.3 * exp(-1)])
