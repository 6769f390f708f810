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


def test_matches_reference_implementation():
    # kxfan2002/SophiaVL-R1 @ a818494, verl/workers/reward/custom.py,
    # CustomRewardManager.__call__; step 100, then 250, of its 500; inputs as below, where all
    # answers have reward 0.2 or more, so that its judge scores all
    r = rewards([1.0, 1.0, 0.3, 0.4], [0.2, 0.5, 0.9, 0.7], 0.3 * exp(-100 / 500))
    recorded = [1.031322717666626, 1.0783069133758545, 0.4409523606300354, 0.5096296072006226]
    assert r == pytest.approx(recorded, rel=1e-5)
    weight = resolve_schedules(trust_grpo(), 250 / 500).advantage.estimators[0].thinking_coef
    r = rewards([1.0, 0.6, 0.3, 0.2, 1.0], [0.8, 0.9, 0.2, 0.4, 0.5], weight)
    recorded = [1.1455674171447754, 0.7637632489204407, 0.3363918364048004, 0.27278366684913635]
    assert r == pytest.approx([*recorded, 1.0909795761108398], rel=1e-5)
