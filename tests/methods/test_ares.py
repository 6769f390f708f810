"""ARES: the reward of uncertain triggers, its controllers, and the KL by difficulty."""

from dataclasses import replace
from math import exp, isnan, log

import pytest
import torch

from grupo.algo.advantages.window_entropy import (
    KLOfDifficulties,
    UncertainTriggerReward,
    difficulty,
    window_entropy,
)
from grupo.core.batch import Signals
from grupo.core.controllers import ExponentialMean, SmoothedKL
from grupo.core.schedules import resolve_schedules
from grupo.methods.ares import KLByDifficulty, MeanDrift, ares
from grupo.testing.batches import make_batch

EASY, MEDIUM, HARD = 0, 1, 2
REWARD = UncertainTriggerReward(threshold=0.5, window=1)


def sigmoid(x):
    return 1 / (1 + exp(-x))


def shaped(bucket, count, target, correct, reward=REWARD):
    counts = torch.tensor([[count], [target]], dtype=torch.float64)
    label, is_correct = torch.tensor([bucket]), torch.tensor([correct])
    return reward.shaped(counts[0], counts[1], label, is_correct).item()


def test_correct_easy_rollout_with_too_many_triggers():
    # g = 1.5, excess 5 - 1.5 = 3.5 > 2, huber 3.5 - 1 = 2.5: e = -0.5 x 2.5 / (1.5 + 2)
    assert shaped(EASY, 15, 10, True) == pytest.approx(-0.5 * 2.5 / 3.5)
    assert shaped(EASY, 15, 10, True) == pytest.approx(-0.3571, abs=1e-4)
    assert shaped(EASY, 100, 10, True) == -0.5  # the cap
    assert shaped(EASY, 0, 10, True) == 0.0  # few triggers cost nothing
    assert shaped(EASY, 13, 10, True) == pytest.approx(-0.5 * (1.5**2 / 4) / 3.5)  # below the knee


def test_correct_medium_rollout_off_the_target_on_either_side():
    # g = 2.5, |D| - g = 2.5 <= 3: huber 2.5^2 / 6, e = -0.5 x huber / (2.5 + 3)
    expected = -0.5 * (2.5**2 / 6) / 5.5
    assert shaped(MEDIUM, 15, 10, True) == pytest.approx(expected)
    assert shaped(MEDIUM, 5, 10, True) == pytest.approx(expected)
    assert shaped(MEDIUM, 12, 10, True) == 0.0


def test_correct_hard_rollout_gains_by_triggers_and_loses_without():
    # g = 3.5, C = 0.6: at the target 0.6 sigmoid(3.5 / 3)
    assert shaped(HARD, 10, 10, True) == pytest.approx(0.6 * sigmoid(3.5 / 3))
    assert shaped(HARD, 10, 10, True) == pytest.approx(0.4575, abs=1e-4)
    # D = -8: -D - g = 4.5 > 4, huber 4.5 - 2 = 2.5: e = -0.5 x 0.6 x 2.5 / 7.5
    assert shaped(HARD, 2, 10, True) == pytest.approx(-0.1)


def test_incorrect_rollouts_gain_by_triggers_beyond_the_margin():
    assert shaped(EASY, 11, 10, False) == pytest.approx(0.5 * 0.6 * 0.5)  # 0.15
    assert shaped(MEDIUM, 10, 10, False) == pytest.approx(0.5 * 0.8 * 0.5)
    assert shaped(HARD, 10, 10, False) == pytest.approx(0.6 * 0.5)
    assert shaped(EASY, 15, 10, False) == pytest.approx(0.3 * sigmoid(3.5 / 2))


def test_targets_below_one_have_a_margin_of_one():
    assert shaped(EASY, 1, 0, True) == 0.0
    assert shaped(EASY, 2, 0, True) == pytest.approx(-0.5 * (1 / 4) / 3)


def test_difficulty_by_the_accuracy_of_the_group():
    reward = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    batch = make_batch([0, 0, 0, 1, 1, 1, 2, 2, 2], reward)  # 2/3, 1/3, 0
    assert difficulty(batch).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_windows_begin_after_their_token_and_are_complete():
    entropy = {"entropy": [[9.0, 1.0, 2.0, 3.0, 4.0, 8.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]]}
    batch = make_batch([0, 0], length=[6, 2], signals=entropy)
    windows = window_entropy(batch, 4)
    assert windows[0, :2].tolist() == [2.5, 4.25]
    assert windows[0, 2:].isnan().all()
    assert windows[1].isnan().all()


def trigger_batch():
    """Group 0 is easy with counts 3 and 1, group 1 hard with counts 0 and 2; token 7 triggers."""
    items = [[7, 7, 7, 5], [7, 5, 7, 7], [7, 7, 5, 5], [5, 7, 7, 5]]
    entropy = [[0, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 1, 1]]
    signals = {"entropy": entropy, "step/item": items}
    return make_batch([0, 0, 1, 1], [1.0, 1.0, 0.0, 0.0], length=[4] * 4, signals=signals)


def test_only_triggers_before_uncertain_windows_count():
    reward = replace(REWARD, trigger_tokens=(7,))
    assert reward.count(trigger_batch()).tolist() == [3.0, 1.0, 0.0, 2.0]
    assert REWARD.count(trigger_batch()).tolist() == [3.0, 1.0, 1.0, 3.0]  # every token


def test_reward_and_metrics_of_a_batch():
    reward, batch = replace(REWARD, trigger_tokens=(7,)), trigger_batch()
    # targets: easy round(2) = 2, hard round(1) = 1; margins 1: all within but easy 3, D - g = 0
    e = reward(batch.reward, batch) - batch.reward
    assert e.tolist() == pytest.approx([0.0, 0.0, 0.3, 0.3])
    metrics = reward.metrics(batch)
    assert (metrics["triggers/easy"], metrics["triggers/hard"]) == (2.0, 1.0)
    assert isnan(metrics["triggers/medium"])
    # windows: 1 1 1, 1 0 0, 0 0 1, 1 1 1 with percentiles 1, 0.9, 0.9, 1
    assert metrics["entropy_windows/percentile_95"] == pytest.approx(0.95)


def test_alpha_follows_the_drift_from_the_last_target():
    easy = MeanDrift("triggers/easy", 0.5, 0.05)
    assert easy.next_value([]) == easy.next_value([9.0]) == 0.5
    assert easy.next_value([9.2, 11.0]) == pytest.approx(0.5 + 0.05 * 2)
    assert easy.next_value([9.0, 99.0]) == 2.0
    assert MeanDrift("triggers/hard", 0.5, -0.05).next_value([9.0, 11.0]) == pytest.approx(0.4)
    assert MeanDrift("triggers/hard", 0.5, -0.05).next_value([9.0, 99.0]) == 0.0


def test_beta_changes_after_the_interval_and_outside_of_the_dead_zone():
    kl = SmoothedKL(interval=2, decay=0.5)
    assert kl.next_value([0.03]) == 1.0
    # mean KL 0.03, e = 2, mean error 1, clipped to 0.2: log b = 0.05 x 0.2
    assert kl.next_value([0.03, 0.03]) == pytest.approx(exp(0.01))
    assert kl.next_value([0.0101, 0.0101]) == 1.0
    # e = -1 / 5, mean error -0.1
    assert kl.next_value([0.008, 0.008]) == pytest.approx(exp(-0.005))


def test_threshold_is_a_running_mean_from_the_first_batch_on():
    threshold = ExponentialMean("entropy_windows/percentile_95", 0.99, 0.0)
    assert threshold.next_value([2.0, 3.0]) == pytest.approx(0.99 * 2 + 0.01 * 3)


def test_kl_of_difficulties_is_the_mean_of_answers():
    ref = {"logp@ref": [[-1.0 + log(2), -1.0], [-1.0, -1.0]]}
    metrics = KLOfDifficulties().metrics(make_batch([0, 1], [1.0, 0.0], length=[2, 2], signals=ref))
    assert metrics["kl_ref/easy"] == pytest.approx((2 - 1 - log(2)) / 2)
    assert metrics["kl_ref/hard"] == 0.0


def test_kl_has_a_coefficient_for_each_difficulty():
    batch = make_batch([0, 1], [1.0, 0.0])
    pi = Signals(logp=torch.full((2, 1), -1.0 + log(2), dtype=torch.float64))
    k3 = 0.5 - 1 + log(2)
    loss = KLByDifficulty(easy=2.0, hard=3.0)(pi, batch)
    assert loss[:, 0].tolist() == pytest.approx([2 * k3, 3 * k3])


def test_controllers_read_the_metrics_that_the_reward_reports():
    method = ares()
    reported = {**REWARD.metrics(trigger_batch()), **KLOfDifficulties().metrics(trigger_batch())}
    assert method.controller_metric_names == set(reported)
    values = {"triggers/easy": (3.0, 5.0), "triggers/hard": (1.0, 2.0)}
    reward = resolve_schedules(method.advantage, 0.0, values).estimators[1]
    assert (reward.alpha_easy, reward.alpha_medium) == (pytest.approx(0.6), 0.5)
    assert (reward.alpha_hard, reward.threshold) == (pytest.approx(0.45), 0.0)
