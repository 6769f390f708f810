"""Samplers in an environment of two turns in which each "yes" of the policy has reward 1."""

import asyncio
from dataclasses import dataclass, field, replace
from math import log

import pytest

from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.rollouts.samplers import (
    DemonstrationSampler,
    FirstTurnTree,
    GroupSampler,
    ResampleUntilInformative,
    SolutionColumn,
)
from grupo.util.rng import derive_key, make_rng

TASK = Task("t", "well?")


@dataclass
class TwoTurnEnv:
    """Environment of two turns; `replied_texts` logs the text of the rollout at each reply."""

    replied_texts: list = field(default_factory=list)

    async def reply(self, task, rollout):
        self.replied_texts.append(rollout.text)
        return ("well?", "sure?", None)[len(rollout.turns)]

    async def score(self, task, rollouts):
        return [RewardResult(reward=float(r.text.count("yes"))) for r in rollouts]


@dataclass(frozen=True)
class CoinActor:
    """Actor that generates "yes" with probability `p`, independently in every fork."""

    key: int = 0
    p: float = 0.5

    async def __call__(self, rollout, observation):
        is_yes = make_rng(self.key, len(rollout.turns)).random() < self.p
        logp = log(self.p if is_yes else 1 - self.p)
        return Response(("w",), (logp,), text="yes" if is_yes else "no")

    async def append_unsampled(self, rollout, observation, text):
        return Response((text,), (0.0,), text=text, sampled=False)

    def fork(self, *label):
        return replace(self, key=derive_key(self.key, *label))


def sample(sampler, actor, task=TASK, env=None):
    return asyncio.run(sampler(task, env or TwoTurnEnv(), actor))


def texts(group):
    return [rollout.text for rollout in group.rollouts]


def test_group_sampler_generates_rollouts_with_their_own_random_streams():
    group = sample(GroupSampler(8), CoinActor())
    assert len(group.rollouts) == 8
    assert len({*texts(group)}) > 1
    assert group.rewards == tuple(text.count("yes") for text in texts(group))


def test_rollout_does_not_depend_on_the_group_size():
    assert texts(sample(GroupSampler(8), CoinActor()))[:3] == texts(
        sample(GroupSampler(3), CoinActor())
    )


def test_group_size_of_the_task_overrides_the_default():
    assert len(sample(GroupSampler(8), CoinActor(), replace(TASK, group_size=3)).rollouts) == 3


def test_rollouts_of_a_tree_share_their_first_turn():
    group = sample(FirstTurnTree(3, 4), CoinActor())
    assert len(group.rollouts) == 12
    for first_turn in range(3):
        leaves = group.rollouts[4 * first_turn : 4 * first_turn + 4]
        assert len({leaf.turns[0] for leaf in leaves}) == 1
        assert all(len(leaf.turns) == 2 for leaf in leaves)
    assert len({text[-2:] for text in texts(group)}) == 2  # the second turns differ


def test_first_turns_are_numbered_as_a_reward_term():
    tree = FirstTurnTree(2, 3)
    group = sample(tree, CoinActor())
    assert [r.reward_terms["first_turn"] for r in group.rollouts] == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    assert (tree.group_size, tree.provides.reward_terms) == (6, {"first_turn"})
    yes_counts = tuple(text.count("yes") for text in texts(group))
    assert group.rewards == yes_counts  # the reward term first_turn has no weight


def test_first_turn_of_a_tree_is_generated_once():
    env = TwoTurnEnv()
    sample(FirstTurnTree(2, 3), CoinActor(), env=env)
    assert env.replied_texts.count("") == 2  # and the 6 leaves get two further replies each
    assert len(env.replied_texts) == 2 + 6 * 2


def test_resampling_stops_at_the_first_group_with_unequal_rewards():
    env = TwoTurnEnv()
    group = sample(ResampleUntilInformative(GroupSampler(2), max_tries=50), CoinActor(), env=env)
    assert group.has_reward_variance
    assert len(env.replied_texts) % 6 == 0  # groups of two rollouts of three replies
    first = sample(GroupSampler(2), CoinActor())
    assert first.has_reward_variance == (len(env.replied_texts) == 6)


def test_resampling_stops_after_max_tries():
    env = TwoTurnEnv()
    group = sample(
        ResampleUntilInformative(GroupSampler(2), max_tries=3), CoinActor(p=1.0), env=env
    )
    assert group.rewards == (2.0, 2.0)
    assert len(env.replied_texts) == 3 * 6


def solve(task):
    return ["yes, because", "yes"]


def test_demonstrations_are_unsampled_rollouts_with_reward_one():
    group = sample(DemonstrationSampler(solve), CoinActor())
    assert texts(group) == ["yes, because", "yes"]
    assert group.rewards == (1.0, 1.0)
    assert {r.source for r in group.rollouts} == {"demonstration"}
    assert not any(response.sampled for r in group.rollouts for _, response in r.turns)


def test_samplers_can_be_nested_three_deep():
    @dataclass(frozen=True)
    class WithDemonstrations:
        """The inner group followed by the demonstrations."""

        inner: object

        async def __call__(self, task, env, actor):
            group = await self.inner(task, env, actor)
            demonstrations = await DemonstrationSampler(solve)(task, env, actor)
            return replace(group, rollouts=(*group.rollouts, *demonstrations.rollouts))

    always_no = ResampleUntilInformative(WithDemonstrations(FirstTurnTree(1, 2)), max_tries=2)
    group = sample(always_no, CoinActor(p=1e-9))
    assert texts(group) == ["nono", "nono", "yes, because", "yes"]
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)
    nested = ResampleUntilInformative(
        WithDemonstrations(ResampleUntilInformative(FirstTurnTree(2, 2), max_tries=2)), max_tries=2
    )
    assert sample(nested, CoinActor()) == sample(nested, CoinActor())


def test_environment_without_observations_gives_empty_rollouts_or_raises():
    class SilentEnv(TwoTurnEnv):
        async def reply(self, task, rollout):
            return None

    assert (
        sample(FirstTurnTree(1, 1), CoinActor(), env=SilentEnv()).rollouts[0].turns
        == Rollout().turns
    )
    with pytest.raises(AssertionError, match="must return a first observation"):
        sample(DemonstrationSampler(solve), CoinActor(), env=SilentEnv())


def test_number_of_first_turns_is_rounded_up_to_the_requested_group_size():
    counts = [
        len(sample(FirstTurnTree(3, 4), CoinActor(), replace(TASK, group_size=n)).rollouts)
        for n in (4, 5)
    ]
    assert counts == [4, 8]


def test_empty_solution_column_holds_no_solution():
    assert SolutionColumn()(replace(TASK, columns={"solution": None})) == []
    assert SolutionColumn()(replace(TASK, columns={"solution": 0})) == ["0"]
