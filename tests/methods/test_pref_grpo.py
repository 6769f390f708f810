"""Pref-GRPO: hand-computed advantages of pairwise win rates."""

import pytest

from grupo.core.types import Rollout, Task
from grupo.methods.grpo import grpo
from grupo.methods.pref_grpo import pref_grpo
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.testing.batches import make_batch


def test_advantages_use_win_rates_and_ignore_reward():
    batch = make_batch(
        group=[0] * 3, reward=[0.0, 9.0, 0.0], reward_terms={"win_rate": [1.0, 0.5, 0.0]}
    )
    advantage = batch.with_advantage(pref_grpo().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([1.0, 0.0, -1.0], rel=1e-5)  # std sqrt((1/4 + 1/4) / 2) = 1/2


def test_advantages_are_clipped():
    win_rate = [1.0] + [0.0] * 49
    batch = make_batch(group=[0] * 50, reward_terms={"win_rate": win_rate})
    # std sqrt(50 x 0.02 x 0.98 / 49) = sqrt(0.02): 0.98 / sqrt(0.02) = 6.93
    assert batch.with_advantage(pref_grpo().advantage).advantage.max() == 5.0


def test_all_ties_have_zero_advantage():
    batch = make_batch(group=[0] * 3, reward_terms={"win_rate": [0.5] * 3})
    assert batch.with_advantage(pref_grpo().advantage).advantage.abs().max() == 0


def test_win_rates_match_the_authors_code():
    # CodeGoat24/Pref-GRPO @ 3e787f6, fastvideo/rewards/unifiedreward_think.py, _pairwise_win_rate
    won = {(0, 1): 1, (0, 2): 1, (0, 3): 0.5, (0, 4): 0, (1, 2): 0}
    won |= {(1, 3): 1, (1, 4): 0, (2, 3): 1, (2, 4): 0.5, (3, 4): 0}
    named = [Rollout(reward=float(i)) for i in range(5)]
    rate = PairwiseWinRate(lambda task, a, b: won[a.reward, b.reward])(Task("k", "?"), named)
    assert rate == [0.625, 0.25, 0.625, 0.125, 0.875]


def test_near_ties_have_full_advantage_and_exact_ties_have_none():
    def comparison(margin):
        return lambda task, a, b: (
            0.5 + 0.5 * (a.reward - b.reward > margin) - 0.5 * (b.reward - a.reward > margin)
        )

    def advantages(estimator, **given):
        return make_batch(group=[0] * 3, **given).with_advantage(estimator).advantage[:, 0].tolist()

    close, far = [0.700, 0.701, 0.702], [0.1, 0.5, 0.9]
    by_score = [advantages(grpo().advantage, reward=scores) for scores in (close, far)]
    for actual in by_score:
        assert actual == pytest.approx([-1, 0, 1], abs=2e-3)
    for scores, expected in ((close, [0, 0, 0]), (far, [-1, 0, 1])):
        named = [Rollout(reward=score) for score in scores]
        rate = PairwiseWinRate(comparison(0.05))(Task("k", "?"), named)
        actual = advantages(pref_grpo().advantage, reward_terms={"win_rate": rate})
        assert actual == pytest.approx(expected, abs=1e-5)
