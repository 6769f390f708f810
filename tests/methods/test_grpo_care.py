"""GRPO-CARE: four rollouts of one answer token each, after one token of reasoning."""

from math import log

import pytest

from grupo.algo.advantages import ScaleByStd
from grupo.algo.losses import Reinforce
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.grpo_care import ConsistencyBonus, grpo_care
from grupo.testing.batches import make_batch

CARE = ConsistencyBonus(consistency_coef=0.5, margin=0.01)


def answered(correct, likelihood, group=None, reward=None):
    n = len(correct)
    seen = {
        "logp@ref": [[-9.0, log(c)] for c in likelihood],
        "step/answer": [[0.0, 1.0]] * n,
    }
    return make_batch(
        group or [0] * n,
        reward or correct,
        length=[2] * n,
        reward_terms={"correct": correct},
        signals=seen,
    )


def test_correct_and_likely_answers_get_more_reward():
    batch = answered([1.0, 1.0, 1.0, 0.0], [0.99, 0.80, 0.60, 0.97])
    # 0.95, 0.8, 0.6, 0.95; the correct ones: mean 0.7833, 0.7733 is enough
    assert CARE.answer_likelihood(batch).tolist() == pytest.approx([0.95, 0.8, 0.6, 0.95])
    assert CARE(batch.reward, batch).tolist() == [1.5, 1.5, 1.0, 0.0]


def test_the_bonus_is_by_accuracy_and_the_rest_of_the_reward_stays():
    batch = answered([0.8, 0.4], [0.5, 0.9], reward=[1.8, 1.4])
    assert CARE(batch.reward, batch).tolist() == pytest.approx([1.8 + 0.4, 1.4])  # mean 0.6


def test_a_little_below_the_mean_is_enough():
    batch = answered([1.0, 1.0], [0.500, 0.515])
    assert CARE(batch.reward, batch).tolist() == [1.5, 1.5]
    batch = answered([1.0, 1.0], [0.50, 0.53])
    assert CARE(batch.reward, batch).tolist() == [1.0, 1.5]


def test_no_bonus_without_a_correct_rollout():
    batch = answered([0.0, 0.0], [0.9, 0.9])
    assert CARE(batch.reward, batch).tolist() == [0.0, 0.0]


def test_likelihood_is_of_the_answers_tokens_alone():
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


def test_the_advantage_is_of_the_sum():
    advantage = (
        answered([1.0, 0.0], [0.9, 0.9])
        .with_advantage(grpo_care().advantage)
        .advantage[:, 0]
        .tolist()
    )
    std = (2 * 0.75**2) ** 0.5  # of 1.5 and 0
    assert advantage == pytest.approx([0.75 / (std + 1e-4), -0.75 / (std + 1e-4)])


def test_matches_the_authors_code():
    # TencentARC/GRPO-CARE @ b0628fc, src/r1-v/src/open_r1/trainer/grpo_trainer_ref_ema.py,
    # compute_loss, lines 586-610 and 636-642; inputs as below, the reward accuracy and format
    batch = make_batch(
        group=[0] * 5,
        reward=[2.0, 1.0, 1.8, 1.0, 2.0],
        length=[4, 4, 3, 4, 4],
        reward_terms={"correct": [1.0, 1.0, 0.8, 0.0, 1.0]},
        signals={
            "logp@ref": [
                [-1.0, -0.02, -0.03, 0.0],
                [-2.0, -0.3, -0.5, -0.1],
                [-1.0, -0.9, 0.0, 0.0],
                [-0.5, -0.01, -0.01, -0.02],
                [-0.3, -0.7, -0.12, -0.2],
            ],
            "step/answer": [
                [0.0, 1.0, 1.0, 0.0],
                [0.0, 0.0, 1.0, 1.0],
                [0.0, 1.0, 0.0, 0.0],
                [0.0, 1.0, 1.0, 1.0],
                [0.0, 0.0, 1.0, 1.0],
            ],
        },
    )
    c = [0.949999988079071, 0.7408183217048645, 0.4065700173377991, 0.949999988079071]
    assert CARE.answer_likelihood(batch).tolist() == pytest.approx(
        [*c, 0.8521438241004944], rel=1e-5
    )
    r = [2.5, 1.5, 1.7999999523162842, 1.0, 2.5]
    assert CARE(batch.reward, batch).tolist() == pytest.approx(r, rel=1e-5)
    A = [0.9838820099830627, -0.5534336566925049, -0.09223903715610504, -1.3220914602279663]
    advantage = batch.with_advantage(grpo_care().advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([*A, 0.9838820099830627], rel=1e-5)


def test_the_defaults_are_the_released_codes():
    method = grpo_care()
    assert method.reference == ReferenceUpdate(rate=0.005, every=10)
    assert method.loss == Reinforce()
    assert method.advantage.estimators[-1] == ScaleByStd(eps=1e-4)
    assert method.required_signals == {"logp@ref", "step/answer"}
