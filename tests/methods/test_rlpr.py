import pytest

from grupo.algo.losses import Clip
from grupo.core.types import Group, Rollout, Task
from grupo.methods.rlpr import KeepMinStd, rlpr
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def group(*given, alone=0.2):
    parts = [{"answer_probability": p, "answer_probability_alone": alone} for p in given]
    return Group(Task("t", ""), tuple(Rollout(reward_terms=p) for p in parts))


def test_reward_is_probability_gain_over_no_reasoning():
    parts = {
        "answer_probability": [0.9, 0.5, 0.1],
        "answer_probability_alone": [0.3, 0.3, 0.3],
    }
    batch = make_batch(group=[0, 0, 0], reward_terms=parts)
    assert rlpr().advantage.estimators[0](batch.reward, batch).tolist() == pytest.approx(
        [0.6, 0.2, 0.0]
    )
    # mean 0.8 / 3; deviations 1/3, -1/15, -4/15; squares 25 + 1 + 16 over 225; std sqrt(21) / 15
    s = 21**0.5 / 15 + 1e-6
    advantage = rlpr().advantage(batch.reward, batch).tolist()
    assert advantage == pytest.approx([1 / 3 / s, -1 / 15 / s, -4 / 15 / s])


def test_too_easy_and_too_hard_groups_are_dropped():
    wide, narrow, hopeless = group(0.4, 0.8), group(0.8, 0.82), group(0.1, 0.15)
    # standard deviations sqrt(0.08), sqrt(0.0002) and 0: a negative gain gets no reward
    assert KeepMinStd(0.05)([wide, narrow, hopeless]) == [wide]
    assert KeepMinStd(0.0)([wide, narrow, hopeless]) == [wide, narrow, hopeless]
    assert KeepMinStd(0.05)([group(0.7)]) == []


def test_standard_deviation_of_the_filter_is_by_n_minus_1():
    wide = group(0.4, 0.8)  # gains 0.2 and 0.6: sqrt(0.08) = 0.283 by n - 1, 0.2 by n
    assert KeepMinStd(0.28)([wide]) == [wide]
    assert KeepMinStd(0.29)([wide]) == []


def test_filter_declares_both_probabilities():
    declared = {"answer_probability", "answer_probability_alone"}
    assert KeepMinStd(0.05).requires.reward_terms == declared


def test_upper_clip_is_higher():
    assert rlpr().loss == Clip(0.2, 0.27)
    assert rlpr().sampler == GroupSampler(8)
    assert rlpr().requires.all_signals == frozenset()
