"""Pairs of siblings in a search tree, with a scripted policy and rule."""

import asyncio
from dataclasses import dataclass

import pytest

from grupo.core.search_tree import UCT
from grupo.core.types import RewardResult
from grupo.rollouts.samplers import TreePairs
from grupo.util.rng import make_rng
from tests.helpers.scripted_actor import END, TASK, Once, script


def lines(context, key):
    """Lines of x and a random letter a or b, and after two lines the end."""
    text = context[1:]
    if text.count("\n") == 2:
        return END
    line = text.rpartition("\n")[2]
    if not line:
        return "x"
    return make_rng(key, len(text)).choice("ab") if line == "x" else "\n"


def search(sampler, reward, next_letter=lines, env=None):
    actor = script(next_letter)
    group = asyncio.run(sampler(TASK, env or Once(reward), actor))
    return group, actor.log


def rewards_first_a(text):
    return float(text.startswith("xa"))


def test_siblings_of_the_best_path_are_pairs_from_their_first_difference():
    group, _ = search(TreePairs(iterations=8, branches=6, max_depth=1), rewards_first_a)
    better, worse = group.rollouts
    assert (better.text, worse.text) == ("xa\n", "xb\n")
    assert (better.reward, worse.reward) == (1.0, 0.0)
    for rollout, letter in ((better, "a"), (worse, "b")):
        (_, common), (_, rest) = rollout.turns
        assert (common.items, common.in_loss, common.observation) == (("x",), False, ("Q",))
        assert (rest.items, rest.in_loss, rest.observation) == ((letter, "\n"), True, ())
        assert rest.sampled
        assert len(rest.logp) == 2
    assert better.reward_terms["pair"] == worse.reward_terms["pair"] == 0
    assert better.reward_terms["visits"] + worse.reward_terms["visits"] == 8


def test_each_depth_of_the_best_path_gives_a_pair_with_a_common_prefix():
    def reward(text):
        return (text[1] == "a") + 0.5 * (text[4] == "b")

    group, _ = search(TreePairs(iterations=40, branches=6, max_depth=2), reward)
    texts = [rollout.text for rollout in group.rollouts]
    assert texts[:2] == ["xa\n", "xb\n"]
    assert texts[2:] == ["xa\nxb\n", "xa\nxa\n"]
    assert [r.reward_terms["pair"] for r in group.rollouts] == [0, 0, 1, 1]
    assert [r.reward for r in group.rollouts[2:]] == [1.5, 1.0]
    for rollout in group.rollouts[2:]:
        assert [a.in_loss for _, a in rollout.turns] == [False, False, True]


def test_search_spends_its_visits_on_the_better_branch():
    sampler = TreePairs(iterations=30, branches=6, max_depth=1, priority=UCT(0.5))
    better, worse = search(sampler, rewards_first_a)[0].rollouts
    assert better.reward_terms["visits"] > 2 * worse.reward_terms["visits"]


def test_alike_steps_have_no_pair_and_equal_rewards():
    group, _ = search(
        TreePairs(iterations=4, branches=3), len, lambda context, key: "x\n."[len(context) - 1]
    )
    assert [rollout.text for rollout in group.rollouts] == ["x\n"]
    assert not group.has_reward_variance


def test_equal_rewards_have_no_pair():
    group, _ = search(TreePairs(iterations=8, branches=6), lambda text: 1.0)
    assert sorted(rollout.text for rollout in group.rollouts) == ["xa\n", "xb\n"]
    assert not group.has_reward_variance


def test_every_answer_is_scored_once_and_the_number_is_the_limit():
    scored = []

    def reward(text):
        scored.append(text)
        return float("xa" in text)

    search(TreePairs(iterations=5, branches=2), reward)
    assert len(scored) == 5
    assert all(text.endswith(END) for text in scored)


@dataclass
class FailsOnB(Once):
    async def score(self, task, rollouts):
        return [
            RewardResult(error="no score") if "xb" in r.text else RewardResult(1.0)
            for r in rollouts
        ]


def test_failed_answers_are_named_and_are_no_values():
    group, _ = search(TreePairs(iterations=8, branches=6, max_depth=1), None, env=FailsOnB())
    failed = [rollout for rollout in group.rollouts if rollout.error]
    assert failed
    assert {rollout.error for rollout in failed} == {"no score"}
    assert {rollout.reward for rollout in group.rollouts if not rollout.error} == {1.0}


def test_search_is_the_same_for_the_same_stream():
    sampler = TreePairs(iterations=6)
    first, again = (search(sampler, rewards_first_a)[0] for _ in range(2))
    assert [r.text for r in first.rollouts] == [r.text for r in again.rollouts]


@pytest.mark.parametrize("field", ["iterations", "branches", "max_depth"])
def test_counts_below_1_are_rejected(field):
    with pytest.raises(ValueError, match=f"TreePairs.{field}: 0. Allowed"):
        TreePairs(**{field: 0})
