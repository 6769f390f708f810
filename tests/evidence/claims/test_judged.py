"""Training on comparisons: rewards, given answers, equal budgets and win rates."""

from dataclasses import replace

import numpy as np
import pytest

from grupo.core.types import Group, Response, Rollout, Task
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import KeyPositions
from grupo.evidence.claims.judged import (
    HigherQuality,
    JudgedBefore,
    JudgedRun,
    given_answers,
    judged_metrics,
    keep_winners,
    own_answers,
    preferred_items,
    train_judged,
)
from grupo.methods.dpo import dpo
from grupo.methods.grpo import grpo
from grupo.rewards.noisy_preferences import NoisyPreferences

SETTING = Setting(
    "keys",
    "",
    KeyPositions(num_tasks=4, length=5, max_keys=2),
    steps=30,
    rollouts_per_step=32,
    learning_rate=0.05,
)
TRUTH = HigherQuality(preferred_items)


def rollout(*preferred):
    return Rollout(
        (("", Response((0,) * len(preferred), (-1.0,) * len(preferred))),),
        step_values={"preferred": preferred},
    )


def every_group(groups):
    return groups


def test_the_true_judge_counts_preferred_items():
    better, worse = rollout(1.0, 0.0, 1.0), rollout(1.0, 0.0, -1.0)
    results = [TRUTH(Task("0", ""), a, b) for a, b in ((better, worse), (worse, better))]
    assert results == [1.0, 0.0]
    assert TRUTH(Task("0", ""), worse, rollout(0.0)) == 0.5


def test_rewards_are_win_rates_and_further_terms_are_kept():
    group = Group(Task("0", ""), (rollout(1.0), rollout(-1.0), rollout(0.0)))
    judged = JudgedBefore(every_group, TRUTH, (("quality", preferred_items),))
    (result,) = judged([group])
    assert [r.reward for r in result.rollouts] == [1.0, 0.0, 0.5]
    assert [r.reward_terms["win_rate"] for r in result.rollouts] == [1.0, 0.0, 0.5]
    assert [r.reward_terms["quality"] for r in result.rollouts] == [1.0, -1.0, 0.0]


def test_winners_alone_are_kept_and_ties_are_dropped():
    pair = tuple(replace(rollout(x), reward=x) for x in (0.0, 1.0))
    tied = tuple(replace(rollout(x), reward=0.5) for x in (0.0, 1.0))
    (kept,) = keep_winners([Group(Task("0", ""), pair), Group(Task("1", ""), tied)])
    assert kept.rollouts == pair[1:]


def answers_of_a_step(arm, steps):
    run = JudgedRun(SETTING, arm, seed=0)
    for _ in range(steps):
        run.step()
    sampled, _ = run.sampled_and_kept_groups(run.method)
    return [action.logp for group in sampled for r in group.rollouts for _, action in r.turns], run


@pytest.mark.parametrize(("build", "of_reference"), [(given_answers, True), (own_answers, False)])
def test_given_answers_are_those_of_the_reference_policy(build, of_reference):
    method = dpo() if of_reference else grpo(kl_coef=0.0)
    logp, run = answers_of_a_step(build("arm", method, TRUTH), steps=3)
    reference = run.reference.logp_table().detach().numpy()
    sampled_from_it = np.isin(np.concatenate(logp), reference)
    assert sampled_from_it.all() == of_reference


@pytest.mark.slow
def test_both_kinds_generate_the_same_number_of_answers():
    arms = own_answers("a", grpo(kl_coef=0.0), TRUTH), given_answers("b", dpo(), TRUTH)
    assert {train_judged(SETTING, arm, 0).num_rollouts for arm in arms} == {30 * 32}


def test_a_policy_without_training_wins_half_of_the_comparisons_with_itself():
    run = JudgedRun(SETTING, given_answers("a", dpo(), TRUTH), seed=0)
    assert run.win_rate(preferred_items) == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("build", [given_answers, own_answers])
def test_comparisons_improve_a_policy_and_reversed_ones_do_not(build):
    method = grpo(kl_coef=0.0) if build is own_answers else dpo()
    rates = {}
    for flip in (0.0, 0.25, 1.0):
        arm = build("arm", method, NoisyPreferences((TRUTH,), flip))
        rates[flip] = judged_metrics(train_judged(SETTING, arm, 0), preferred_items)["win_rate"]
    assert rates[0.0] > 0.7
    assert rates[0.25] > 0.6
    assert rates[1.0] < 0.4
