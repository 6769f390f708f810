"""SPO: value tracker, whitened advantages and task sampling."""

from math import sqrt

import pytest
import torch

from grupo.core.batch import TaskHistory
from grupo.core.types import Group, Rollout, Task
from grupo.methods.spo_single_stream import spo_single_stream
from grupo.rollouts.curricula import BetaCounts, CurriculumRequest, UncertaintyWeighted, beta_mean
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.testing.batches import make_batch


def task_history(*rewards):
    return TaskHistory(tuple(range(len(rewards))), tuple((float(r),) for r in rewards))


def test_unseen_task_has_baseline_one_half():
    assert beta_mean(task_history(), 0.875) == 0.5


def test_tracker_moves_by_reward_and_forgets():
    # al = be = 1/2; r = 1: al = 0.4375 + 1, be = 0.4375; then r = 0
    al, be = 1.4375, 0.4375
    assert beta_mean(task_history(1), 0.875) == pytest.approx(al / (al + be))
    al, be = 0.875 * al, 0.875 * be + 1
    assert beta_mean(task_history(1, 0), 0.875) == pytest.approx(al / (al + be))
    # eight 1s in all, as 1 / (1 - 0.875) says, and nothing left of the 1/2: 8 / 8
    assert beta_mean(task_history(*[1] * 200), 0.875) == pytest.approx(1.0)


def test_advantages_are_whitened_over_batch():
    batch = make_batch(group=[0, 1], reward=[1, 0])  # a = [1/2, -1/2], std sqrt(1/2)
    A = spo_single_stream().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([0.5 / sqrt(0.5), -0.5 / sqrt(0.5)])


def test_rare_success_has_larger_advantage():
    batch = make_batch(group=[0, 1], reward=[1, 1], history=[task_history(1), task_history(0)])
    # v = 1.4375 / 1.875 and 0.4375 / 1.875: two values lie 1 / sqrt(2) stds off their mean
    A = spo_single_stream().advantage(batch.reward, batch)
    assert A.tolist() == pytest.approx([-1 / sqrt(2), 1 / sqrt(2)], rel=1e-6)


def test_single_rollout_batch_has_zero_advantage():
    batch = make_batch(group=[0], reward=[1])
    assert spo_single_stream().advantage(batch.reward, batch).tolist() == [0.0]


def curriculum_request(history, wanted, count=10, seed=0, round=0):
    return CurriculumRequest([Task(str(i), "") for i in range(count)], history, wanted, seed, round)


def test_tasks_are_not_repeated_within_step():
    history = History(statistics_by_task=StatisticStore((BetaCounts(0.875),)))
    chosen = UncertaintyWeighted(0.875)(curriculum_request(history, 10))
    assert sorted(int(task.key) for task in chosen) == list(range(10))
    assert UncertaintyWeighted(0.875)(curriculum_request(History(), 3, round=1)) == []


def test_uncertain_tasks_are_sampled_more_often():
    # task 0 always pays: v is near 1 after 60 times, its weight near 0.05; the other's 0.55
    history = History(statistics_by_task=StatisticStore((BetaCounts(0.875),)))
    history.append_groups(0, [Group(Task("0", ""), (Rollout(reward=1.0),) * 60)])
    first = 0
    for drawn_before in range(400):
        history.num_tasks_drawn = drawn_before
        first += UncertaintyWeighted(0.875)(curriculum_request(history, 1, count=2))[0].key == "0"
    v = beta_mean(task_history(*[1] * 60), 0.875)
    weight = sqrt(v * (1 - v)) + 0.05
    assert first / 400 == pytest.approx(weight / (weight + 0.55), abs=0.06)


def test_defaults_match_paper():
    method = spo_single_stream()
    assert method.sampler.group_size == 1
    assert (method.loss.clip_low, method.loss.clip_high) == (0.2, 0.28)
    assert method.requires.all_signals == frozenset()
    assert torch.equal(
        method.aggregation(make_batch([0, 1], length=[1, 3])).sum(), torch.tensor(1.0).double()
    )
