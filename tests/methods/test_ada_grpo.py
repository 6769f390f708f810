"""Ada-GRPO: eight rollouts, two of a rare format and six of a common one."""

import pytest

from grupo.algo.minibatches import Updates
from grupo.core.schedules import resolve_schedules
from grupo.methods.ada_grpo import RarityScale, ada_grpo
from grupo.testing.batches import make_batch


def scaled_rewards(strength, mode=(1.0, 1.0, *[3.0] * 6), reward=(1.0,) * 8):
    batch = make_batch(
        group=[0] * len(mode), reward=list(reward), reward_terms={"mode": list(mode)}
    )
    return RarityScale(strength)(batch.reward, batch).tolist()


def test_rare_format_has_the_largest_reward_at_first():
    assert scaled_rewards(1.0) == pytest.approx([4.0] * 2 + [8 / 6] * 6)


def test_scale_halfway_and_at_the_end():
    assert scaled_rewards(0.5) == pytest.approx([2.5] * 2 + [1 + (8 / 6 - 1) / 2] * 6)
    assert scaled_rewards(0.0) == [1.0] * 8


def test_rarity_coef_decays_along_half_a_cosine():
    strengths = [
        resolve_schedules(ada_grpo(), p).advantage.estimators[0].rarity_coef
        for p in (0.0, 0.5, 1.0)
    ]
    assert strengths == pytest.approx([1.0, 0.5, 0.0])


def test_rare_incorrect_rollout_has_reward_0():
    assert scaled_rewards(1.0, mode=(1.0, 2.0), reward=(0.0, 1.0)) == [0.0, 2.0]


def test_unknown_format_has_reward_0():
    assert scaled_rewards(1.0, mode=(-1.0, 2.0), reward=(1.0, 1.0)) == [0.0, 2.0]


def test_formats_are_counted_within_the_group():
    batch = make_batch(
        group=[0, 0, 1, 1], reward=[1.0] * 4, reward_terms={"mode": [1.0, 2.0, 1.0, 1.0]}
    )
    assert RarityScale(1.0)(batch.reward, batch).tolist() == [2.0, 2.0, 1.0, 1.0]


def test_update_plan_is_the_released_one():
    assert ada_grpo().updates == Updates(minibatches=6)
