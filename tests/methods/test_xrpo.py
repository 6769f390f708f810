"""XRPO: hand-computed novelty bonus of unlikely correct answers."""

import asyncio
from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.core.types import SolvedTask, Task
from grupo.methods.xrpo import NoveltyBonus, xrpo
from grupo.rollouts.curricula import ShuffledTasks, UncertaintyAllocation
from grupo.testing.batches import make_batch
from tests.helpers.scripted_actor import END, Once, Script


def correct_batch(logp, length=None):
    n = len(logp)
    batch = make_batch(group=[0] * n, length=length)
    return replace(batch, old_logp=torch.tensor(logp, dtype=torch.float64))


def advantages(A, logp, weight=1.0, cap=1.0):
    batch = correct_batch(logp)
    return NoveltyBonus(weight, cap)(torch.tensor(A, dtype=torch.float64), batch).tolist()


def test_novelty_bonus_grows_as_likelihood_falls_up_to_cap():
    # means of log-probabilities: -1 over both, so s - mean(s) is -1/2 and 1/2
    bonus = 1 - exp(-0.5)
    assert bonus == pytest.approx(0.3935, abs=1e-4)
    assert advantages([1.5, 1.5], [[-1.5], [-0.5]]) == pytest.approx([1.5 + bonus, 1.5])
    assert advantages([0.2, 0.2], [[-1.5], [-0.5]]) == pytest.approx([0.4, 0.2])  # at most doubled


def test_wrong_answers_have_no_bonus():
    assert advantages([-1.0, 0.0], [[-9.0], [-9.5]]) == [-1.0, 0.0]


def test_likelihood_is_mean_over_actions():
    batch = correct_batch([[-1.5, -1.5], [-0.5, 77.0]], length=[2, 1])
    A = torch.tensor([1.5, 1.5], dtype=torch.float64)
    assert NoveltyBonus(1.0, 1.0)(A, batch).tolist() == pytest.approx([2.5 - exp(-0.5), 1.5])


def test_defaults_match_paper():
    assert xrpo().advantage.estimators[-1] == NoveltyBonus(novelty_coef=2.5, max_bonus_fraction=0.5)


def test_unsolved_tasks_are_asked_behind_worked_examples():
    task = Task("t", "Q", demonstrations=(SolvedTask("1+1=", "2"), SolvedTask("1+2=", "3")))
    log = []
    actor = Script(lambda context, key: END, log)
    sampler = xrpo(group_size=2, examples=2).sampler
    group = asyncio.run(sampler(task, Once(lambda text: 0.0), actor))
    assert [context for context, _ in log] == ["Q", "Q", *["1+1=2\n\n1+2=3\n\nQ"] * 2]
    assert [rollout.source for rollout in group.rollouts] == ["policy"] * 2 + ["with_examples"] * 2
    solved = asyncio.run(sampler(task, Once(lambda text: 1.0), actor))
    assert len(solved.rollouts) == 2


def test_half_of_the_rollouts_are_allocated_in_phases():
    assert xrpo(phases=2).curriculum == UncertaintyAllocation(ShuffledTasks(), 4, 8, 2)
    assert xrpo().curriculum == ShuffledTasks()
