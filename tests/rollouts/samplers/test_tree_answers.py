"""Answers of a search tree with the values of their steps, by hand."""

import asyncio

import pytest

from grupo.core.search_tree import UCT
from grupo.core.types import RewardResult
from grupo.rollouts.samplers import TreeAnswers
from grupo.util.rng import make_rng
from tests.helpers.scripted_actor import END, TASK, Once, script


def lines(context, key):
    """The line a or b at random, then y or n at random, and the end."""
    text = context[1:]
    if len(text) == 1:
        return "\n"
    if len(text) == 3:
        return END
    return make_rng(key, len(text)).choice("ab" if not text else "yn")


def searched(sampler, env):
    return asyncio.run(sampler(TASK, env, script(lines).fork(2)))


def test_values_of_a_step_are_the_mean_reward_of_the_answers_through_it():
    group = searched(
        TreeAnswers(iterations=24, branches=6, max_depth=1, priority=UCT(5.0)),
        Once(lambda text: float(text != "b\nn.")),
    )
    by_text = {rollout.text.replace("\n", ""): rollout for rollout in group.rollouts}
    assert sorted(by_text) == ["an.", "ay.", "bn.", "by."]  # each answer once
    b_answers = [by_text["by."], by_text["bn."]]
    first = {r.step_values["prefix_value"][2] for r in b_answers}
    assert len(first) == 1  # one label for the step that both share
    assert 0 < first.pop() < 1
    for text, rollout in by_text.items():
        assert rollout.step_values["prefix_cut"] == (0.0, 0.0, 1.0, 1.0)
        assert rollout.step_values["prefix_value"][3] == rollout.reward
        if text[0] == "a":
            assert rollout.step_values["prefix_value"][2] == 1.0


def test_label_is_three_quarters_where_three_of_four_answers_are_right():
    rewards = iter((1.0, 1.0, 0.0, 1.0))
    sampler = TreeAnswers(iterations=4, branches=1, max_depth=1)
    group = searched(sampler, Once(lambda text: next(rewards)))
    assert {rollout.step_values["prefix_value"][2] for rollout in group.rollouts} == {0.75}


class Unscored(Once):
    async def score(self, task, rollouts):
        return [RewardResult(error="no score") for _ in rollouts]


def test_failed_answers_are_named_and_have_no_label():
    group = searched(TreeAnswers(iterations=3), Unscored())
    assert {rollout.error for rollout in group.rollouts} == {"no score"}
    assert all("prefix_value" not in rollout.step_values for rollout in group.rollouts)


def test_answers_without_a_step_in_the_tree_have_their_reward_as_label():
    group = searched(TreeAnswers(iterations=1, step_end="never"), Once(len))
    (rollout,) = group.rollouts
    assert rollout.step_values["prefix_cut"] == (0.0, 0.0, 0.0, 1.0)
    assert rollout.step_values["prefix_value"][3] == pytest.approx(4.0)
