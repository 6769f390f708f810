"""GRPO-CARE: four rollouts of one answer token each, after one token of reasoning."""

from math import log

import pytest

from grupo.algo.advantages import ScaleByStd
from grupo.algo.losses import Reinforce
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.grpo_care import ConsistencyBonus, grpo_care
from grupo.testing.batches import make_batch

CARE = ConsistencyBonus(consistency_coef=0.5, margin=0.01)


def answer_batch(correct, likelihood, group=None, reward=None):
    n = len(correct)
    signals = {
        "logp@ref": [[-9.0, log(c)] for c in likelihood],
        "step/answer": [[0.0, 1.0]] * n,
    }
    return make_batch(
        group or [0] * n,
        reward or correct,
        length=[2] * n,
        reward_terms={"correct": correct},
        signals=signals,
    )


def test_bonus_rewards_correct_and_likely_answers():
    batch = answer_batch([1.0, 1.0, 1.0, 0.0], [0.99, 0.80, 0.60, 0.97])
    # 0.95, 0.8, 0.6, 0.95; the correct ones: mean 0.7833, 0.7733 is enough
    assert CARE.answer_likelihood(batch).tolist() == pytest.approx([0.95, 0.8, 0.6, 0.95])
    assert CARE(batch.reward, batch).tolist() == [1.5, 1.5, 1.0, 0.0]


def test_bonus_depends_on_accuracy_and_keeps_other_reward_terms():
    batch = answer_batch([0.8, 0.4], [0.5, 0.9], reward=[1.8, 1.4])
    assert CARE(batch.reward, batch).tolist() == pytest.approx([1.8 + 0.4, 1.4])  # mean 0.6


def test_bonus_threshold_is_slightly_below_mean():
    batch = answer_batch([1.0, 1.0], [0.500, 0.515])
    assert CARE(batch.reward, batch).tolist() == [1.5, 1.5]
    batch = answer_batch([1.0, 1.0], [0.50, 0.53])
    assert CARE(batch.reward, batch).tolist() == [1.0, 1.5]


def test_no_bonus_without_correct_rollout():
    batch = answer_batch([0.0, 0.0], [0.9, 0.9])
    assert CARE(batch.reward, batch).tolist() == [0.0, 0.0]


def test_likelihood_covers_answer_tokens_only():
    batch = make_batch(
        group=[0, 0],
        length=[3, 2],
        reward_terms={"correct": [1.0, 1.0]},
        signals={
            "logp@ref": [[-5.0, log(0.9), log(0.4)], [-1.0, -1.0, log(0.9)]],
            "step/answer": [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]],  # the last is padding
        },
    )
    assert CARE.answer_likelihood(batch).tolist() == pytest.approx([(0.9 * 0.4) ** 0.5, 0.0])


def test_advantage_uses_reward_plus_bonus():
    advantage = (
        answer_batch([1.0, 0.0], [0.9, 0.9])
        .with_advantage(grpo_care().advantage)
        .advantage[:, 0]
        .tolist()
    )
    std = (2 * 0.75**2) ** 0.5  # of 1.5 and 0
    assert advantage == pytest.approx([0.75 / (std + 1e-4), -0.75 / (std + 1e-4)])


def test_defaults_match_release():
    method = grpo_care()
    assert method.reference == ReferenceUpdate(rate=0.005, every=10)
    assert method.loss == Reinforce()
    assert method.advantage.estimators[-1] == ScaleByStd(eps=1e-4)
    assert method.requires.all_signals == {"logp@ref", "step/answer"}
