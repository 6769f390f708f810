"""Rollouts that branch where the world left the policy unsure."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.interfaces import TokenScores
from grupo.core.types import Group, RewardResult, Rollout
from grupo.rollouts.samplers import EntropyBranching, ResampleUntilInformative
from grupo.training.collate import collate
from tests.helpers.scripted_actor import TASK, Script, dice, streams


@dataclass
class Talks:
    """A world that speaks `turns` times: R0, R1 and so on."""

    turns: int = 3

    async def reply(self, task, rollout):
        turn = len(rollout.turns)
        return f"R{turn}" if turn < self.turns else None

    async def score(self, task, rollouts):
        return [RewardResult(reward=float("c" in r.text)) for r in rollouts]


@dataclass(frozen=True)
class Unsure(Script):
    """How unsure it is in each turn, of as many tokens as it was asked about."""

    entropy: tuple = (0.0,)
    most: float = 2.0

    async def score(self, rollout):
        said = rollout.turns[-1][1].items
        H = self.entropy[min(len(rollout.turns), len(self.entropy)) - 1]
        return TokenScores((-1.0,) * len(said), (H,) * len(said), self.most)


def says(*entropy, text=dice) -> Unsure:
    return Unsure(text, [], entropy=entropy)


def sample(sampler, act, task=TASK, turns=3) -> Group:
    return asyncio.run(sampler(task, Talks(turns), act))


def nodes(rollout: Rollout) -> list[int]:
    """The number of each of its turns."""
    marks, found, begin = rollout.step_values["node"], [], 0
    for _, action in rollout.turns:
        found.append(int(marks[begin]))
        begin += len(action.items)
    return found


def letter(read, key):
    return "."


def branched(entropy, **how) -> int:
    """Of 600 rollouts of two turns, how many another went on from."""
    sampler = EntropyBranching(leaves=1200, initial_rollouts=600, entropy_tokens=1, **how)
    group = sample(sampler, says(*entropy, text=letter), turns=2)
    starts = [nodes(r)[0] for r in group.rollouts if nodes(r)[0] < 600]
    return len(starts) - len(set(starts))


@pytest.mark.parametrize(
    ("rise", "chance"),
    [(1.0, 0.7), (0.0, 0.5), (-3.0, 0.0), (9.0, 1.0)],  # .5 + .2 dH, clipped to 0 and 1
)
def test_the_chance_of_a_branch_grows_with_how_much_less_sure_the_turn_is(rise, chance):
    # of one token each: H is (4 + 2 dH) / 2 less 4 / 2
    count = branched((8.0, 8.0 + 2 * rise))
    assert count == pytest.approx(600 * chance, abs=3.5 * (600 * 0.25) ** 0.5)
    assert count == 600 * chance or 0 < chance < 1


def test_entropies_of_the_first_tokens_add_up():
    long = says(0.0, 1.0, text=lambda read, key: "." if len(read) % 10 == 9 else "x")
    certain = EntropyBranching(
        leaves=2, initial_rollouts=1, branch_prob=0.0, entropy_weight=1.0, entropy_tokens=2
    )
    assert len({nodes(r)[0] for r in sample(certain, long, turns=2).rollouts}) == 1  # 2 x 1 / 2
    never = replace(certain, entropy_weight=-1.0)
    assert len({nodes(r)[0] for r in sample(never, long, turns=2).rollouts}) == 2


def test_a_branch_shares_what_was_said_before_the_turn_and_nothing_of_it():
    sampler = EntropyBranching(leaves=2, initial_rollouts=1, branch_prob=1.0)
    one, other = sample(sampler, says(0.0)).rollouts
    assert one.turns[0][1] is other.turns[0][1]
    assert one.turns[1][0] == other.turns[1][0] == "R1"
    assert nodes(one)[0] == nodes(other)[0]
    assert not set(nodes(one)[1:]) & set(nodes(other)[1:])
    assert not set(streams(one)[1:]) & set(streams(other)[1:])


def test_who_went_on_from_another_is_branched_from_only_after_its_own_turn():
    sampler = EntropyBranching(leaves=9, initial_rollouts=1, branch_prob=1.0)
    group = sample(sampler, says(0.0))
    # round 2: one more from the first turn; round 3: one more from the second; round 4: one more
    # from the second turn of the other; all are over, so that others begin, one after another
    paths = [nodes(r) for r in group.rollouts]
    shared = [sum(path[:n] == paths[0][:n] for path in paths) for n in (1, 2)]
    assert shared == [4, 2]


def test_as_many_ways_as_are_wanted_go_on():
    sampler = EntropyBranching(leaves=4, initial_rollouts=1, branches=4, branch_prob=1.0)
    group = sample(sampler, says(0.0), turns=2)
    assert len({nodes(r)[0] for r in group.rollouts}) == 1
    assert len({nodes(r)[1] for r in group.rollouts}) == 4


def test_where_all_are_over_and_too_few_others_begin():
    group = sample(
        EntropyBranching(leaves=5, initial_rollouts=2, branch_prob=0.0, entropy_weight=0.0),
        says(0.0),
    )
    assert len({nodes(r)[0] for r in group.rollouts}) == 5


@pytest.mark.parametrize("leaves", [1, 2, 5, 16])
def test_there_are_as_many_leaves_as_asked_for(leaves):
    for key in range(10):
        act = says(1.0, 3.0, 2.0).fork(key)
        group = sample(EntropyBranching(leaves, initial_rollouts=4), act)
        assert len(group.rollouts) == leaves
        assert len({tuple(nodes(r)) for r in group.rollouts}) == leaves
        assert len({n for r in group.rollouts for n in nodes(r)}) == len(act.log)


def test_a_task_may_say_how_many_attempts_it_wants():
    sampler = EntropyBranching()
    assert sampler.group_size == 16
    assert len(sample(sampler, says(0.0), replace(TASK, group_size=3)).rollouts) == 3


def test_a_group_is_its_streams_own():
    sampler = EntropyBranching(8, 4)
    first, again, other = (sample(sampler, says(0.0).fork(k)) for k in (1, 1, 2))
    assert first == again != other


def test_marks_reach_the_batch():
    group = sample(
        EntropyBranching(leaves=2, initial_rollouts=1, branch_prob=1.0), says(0.0, text=letter)
    )
    batch = collate([group], lambda rows: {})
    node = batch.signals["step/node"][batch.mask].reshape(2, 3)
    assert (node[0] == node[1]).tolist() == [True, False, False]


def test_the_rollouts_are_sampled_again_as_a_whole():
    sampler = EntropyBranching(2, 1)
    tries = [sample(sampler, says(0.0).fork(k)) for k in range(40)]
    unlucky = next(k for k, group in enumerate(tries) if not group.has_reward_variance)
    act = says(0.0).fork(unlucky)
    again = sample(sampler, act.fork("again", 1))
    assert sample(ResampleUntilInformative(sampler, max_tries=2), act) == again
