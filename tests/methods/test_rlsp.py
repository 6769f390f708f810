import pytest

from grupo.algo.losses import KL, Clip
from grupo.methods.rlsp import SearchReward, rlsp
from grupo.testing.batches import make_batch


def total_reward(reward, length, effort, **terms):
    batch = make_batch(
        group=[0], reward=[reward], length=[length], reward_terms={"effort": [effort]}
    )
    return SearchReward(**terms)(batch.reward, batch).item()


def test_short_reasoning_penalty_fades():
    assert total_reward(1.0, 2000, 0.5, outcome_weight=1.0) == 0.5
    assert total_reward(1.0, 1000, 0.5, outcome_weight=1.0) == 0.0
    assert total_reward(0.0, 2000, 0.5, outcome_weight=1.0) == -0.5


def test_effort_weight_is_one_fifth():
    assert total_reward(1.0, 2000, 0.5) == pytest.approx(0.8 * 0.5 + 0.2 * 0.5)
    assert total_reward(0.0, 10_000, 1.0) == pytest.approx(0.8 * -0.1 + 0.2)
    assert total_reward(-0.5, 10_000, 0.0) == pytest.approx(0.8 * -0.6)  # no answer


def test_all_wrong_group_has_nonzero_advantage():
    batch = make_batch(
        group=[0, 0], reward=[0.0, 0.0], length=[4, 8], reward_terms={"effort": [0.5, 0.5]}
    )
    A = rlsp(short_penalty=4.0).advantage(batch.reward, batch)
    # R = 0.8 (0 - 4 / n) + 0.1: -0.7 and -0.3
    assert A.tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-5)


def test_defaults_match_release():
    assert rlsp().advantage.estimators[0] == SearchReward(1000.0, 0.8)
    assert rlsp().loss == Clip(0.2, 0.2) + 0.05 * KL()
