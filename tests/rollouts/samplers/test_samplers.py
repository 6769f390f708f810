"""Samplers on a world of two words: the policy says "yes" or "no", twice, and "yes" earns 1."""

import asyncio
from dataclasses import dataclass, field, replace
from math import log

import pytest

from grupo.core.rng import derive_key, make_rng
from grupo.core.types import Action, RewardResult, Rollout, Task
from grupo.rollouts.samplers import (
    DemonstrationSampler,
    FirstTurnTree,
    GroupSampler,
    ResampleUntilInformative,
    SolutionColumn,
)

TASK = Task("t", "well?")


@dataclass
class TwoQuestions:
    asked: list = field(default_factory=list)

    async def reply(self, task, rollout):
        self.asked.append(rollout.text)
        return ("well?", "sure?", None)[len(rollout.turns)]

    async def score(self, task, rollouts):
        return [RewardResult(reward=float(r.text.count("yes"))) for r in rollouts]


@dataclass(frozen=True)
class Coin:
    """Says "yes" with probability `p`; every fork tosses a coin of its own."""

    key: int = 0
    p: float = 0.5

    async def __call__(self, rollout, seen):
        heads = make_rng(self.key, len(rollout.turns)).random() < self.p
        return Action(
            ("w",),
            (log(self.p if heads else 1 - self.p),),
            text="yes" if heads else "no",
        )

    async def append_unsampled(self, rollout, seen, text):
        return Action((text,), (0.0,), text=text, sampled=False)

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))


def sample(sampler, act, task=TASK, env=None):
    return asyncio.run(sampler(task, env or TwoQuestions(), act))


def texts(group):
    return [rollout.text for rollout in group.rollouts]


def test_independent_makes_n_rollouts_with_streams_of_their_own():
    group = sample(GroupSampler(8), Coin())
    assert len(group.rollouts) == 8
    assert len({*texts(group)}) > 1
    assert group.rewards == tuple(text.count("yes") for text in texts(group))


def test_a_rollout_does_not_depend_on_how_many_others_there_are():
    assert texts(sample(GroupSampler(8), Coin()))[:3] == texts(sample(GroupSampler(3), Coin()))


def test_a_task_may_say_how_many_attempts_it_wants():
    assert len(sample(GroupSampler(8), Coin(), replace(TASK, group_size=3)).rollouts) == 3


def test_rollouts_of_a_tree_share_their_first_turn():
    group = sample(FirstTurnTree(3, 4), Coin())
    assert len(group.rollouts) == 12
    for trunk in range(3):
        leaves = group.rollouts[4 * trunk : 4 * trunk + 4]
        assert len({leaf.turns[0] for leaf in leaves}) == 1
        assert all(len(leaf.turns) == 2 for leaf in leaves)
    assert len({text[-2:] for text in texts(group)}) == 2  # the second turns differ


def test_rollouts_of_a_tree_are_told_which_trunk_they_share():
    tree = FirstTurnTree(2, 3)
    group = sample(tree, Coin())
    assert [r.reward_terms["first_turn"] for r in group.rollouts] == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert (tree.group_size, tree.provides) == (6, ("first_turn",))
    assert group.rewards == tuple(text.count("yes") for text in texts(group))  # it earns nothing


def test_the_trunk_of_a_tree_is_sampled_once():
    world = TwoQuestions()
    sample(FirstTurnTree(2, 3), Coin(), env=world)
    assert world.asked.count("") == 2  # and 6 leaves are asked twice more each
    assert len(world.asked) == 2 + 6 * 2


def test_sampling_again_stops_at_the_first_group_that_teaches():
    world = TwoQuestions()
    group = sample(ResampleUntilInformative(GroupSampler(2), max_tries=50), Coin(), env=world)
    assert group.has_reward_variance
    assert len(world.asked) % 6 == 0  # groups of two rollouts of three replies
    first = sample(GroupSampler(2), Coin())
    assert first.has_reward_variance == (len(world.asked) == 6)


def test_sampling_again_gives_up_after_its_tries():
    world = TwoQuestions()
    group = sample(ResampleUntilInformative(GroupSampler(2), max_tries=3), Coin(p=1.0), env=world)
    assert group.rewards == (2.0, 2.0)
    assert len(world.asked) == 3 * 6


def solve(task):
    return ["yes, because", "yes"]


def test_demonstrations_are_recited_and_earn_one():
    group = sample(DemonstrationSampler(solve), Coin())
    assert texts(group) == ["yes, because", "yes"]
    assert group.rewards == (1.0, 1.0)
    assert {r.source for r in group.rollouts} == {"demonstration"}
    assert not any(action.sampled for r in group.rollouts for _, action in r.turns)


def test_samplers_wrap_samplers_three_deep():
    @dataclass(frozen=True)
    class Shown:
        """The inner group and the worked solutions, side by side."""

        inner: object

        async def __call__(self, task, env, act):
            group = await self.inner(task, env, act)
            worked = await DemonstrationSampler(solve)(task, env, act)
            return replace(group, rollouts=(*group.rollouts, *worked.rollouts))

    unlucky = ResampleUntilInformative(Shown(FirstTurnTree(1, 2)), max_tries=2)
    group = sample(unlucky, Coin(p=1e-9))
    assert texts(group) == ["nono", "nono", "yes, because", "yes"]
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)
    again = ResampleUntilInformative(
        Shown(ResampleUntilInformative(FirstTurnTree(2, 2), max_tries=2)), max_tries=2
    )
    assert sample(again, Coin()) == sample(again, Coin())


def test_a_world_that_says_nothing_cannot_be_answered():
    class Silent(TwoQuestions):
        async def reply(self, task, rollout):
            return None

    assert sample(FirstTurnTree(1, 1), Coin(), env=Silent()).rollouts[0].turns == Rollout().turns
    with pytest.raises(AssertionError, match="must return a first observation"):
        sample(DemonstrationSampler(solve), Coin(), env=Silent())


def test_a_tree_has_as_many_trunks_as_the_attempts_asked_for_take():
    counts = [
        len(sample(FirstTurnTree(3, 4), Coin(), replace(TASK, group_size=n)).rollouts)
        for n in (4, 5)
    ]
    assert counts == [4, 8]


def test_a_column_that_is_empty_holds_no_solution():
    assert SolutionColumn()(replace(TASK, columns={"solution": None})) == []
    assert SolutionColumn()(replace(TASK, columns={"solution": 0})) == ["0"]
