"""Trust-GRPO: two right and two wrong, and a judge who sees it or does not."""

from math import exp

import pytest

from grupo.methods.trust_grpo import Trusted, trust_grpo
from grupo.schedules import at
from grupo.testing import batch_of


def rewards(correct, thinking, weight=0.3, group=None):
    batch = batch_of(
        group=group or [0] * len(correct), parts={"correct": correct, "thinking": thinking}
    )
    return Trusted(weight)(batch.reward, batch).tolist()


def test_a_judge_who_prefers_the_wrong_is_trusted_less():
    # trust e^(0.2 - 0.8): 0.3 x 0.5488 x 0.2 and x 0.8
    r = rewards([1.0, 1.0, 0.0, 0.0], [0.2, 0.2, 0.8, 0.8])
    assert r == pytest.approx([1 + 0.06 * exp(-0.6)] * 2 + [0.24 * exp(-0.6)] * 2)
    assert r == pytest.approx([1.0329, 1.0329, 0.1317, 0.1317], abs=1e-4)


def test_a_judge_who_prefers_the_right_is_trusted():
    r = rewards([1.0, 1.0, 0.0, 0.0], [0.8, 0.8, 0.2, 0.2])
    assert r == pytest.approx([1.24, 1.24, 0.06, 0.06])


def test_with_nobody_right_or_nobody_wrong_there_is_no_gap():
    assert rewards([0.0, 0.0], [0.5, 1.0]) == pytest.approx([0.15, 0.3])
    assert rewards([1.0, 1.0], [0.5, 1.0]) == pytest.approx([1.15, 1.3])


def test_each_group_has_a_trust_of_its_own():
    r = rewards([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], group=[0, 0, 1, 1])
    assert r == pytest.approx([1.0, 0.3 * exp(-1), 1.3, 0.0])


def test_the_thinking_reward_fades():
    weights = [at(trust_grpo(), p).credit.steps[0].weight for p in (0.0, 0.5, 1.0)]
    assert weights == pytest.approx([0.3, 0.3 * exp(-0.5), 0.3 * exp(-1)])


def test_the_defaults_are_the_papers():
    assert trust_grpo() == trust_grpo(group=8, weight=0.3, clip=0.2, kl=0.04)
