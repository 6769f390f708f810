"""Rollouts that branch after observations that raise the policy's entropy."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Group, RewardResult, Rollout
from grupo.rollouts.samplers import EntropyBranching, ResampleUntilInformative
from grupo.training.update.collate import collate
from tests.helpers.fast_cases import fast_cases
from tests.helpers.scripted_actor import TASK, Script, dice, streams


@dataclass
class MultiTurnEnv:
    """Environment of `turns` turns, with observations R0, R1 and so on."""

    turns: int = 3

    async def reply(self, task, rollout):
        turn = len(rollout.turns)
        return f"R{turn}" if turn < self.turns else None

    async def score(self, task, rollouts):
        return [RewardResult(reward=float("c" in r.text)) for r in rollouts]


@dataclass(frozen=True)
class EntropyActor(Script):
    """Actor whose tokens of turn i have the entropy `entropy[i]`; the last entry is repeated."""

    entropy: tuple = (0.0,)
    max_entropy: float = 2.0

    async def logprobs(self, rollout):
        length = len(rollout.last_response.items)
        entropy = self.entropy[min(len(rollout.turns), len(self.entropy)) - 1]
        return TokenLogprobs((-1.0,) * length, (entropy,) * length, self.max_entropy)


def actor_with_entropy(*entropy, text=dice) -> EntropyActor:
    return EntropyActor(text, [], entropy=entropy)


def sample(sampler, actor, task=TASK, turns=3) -> Group:
    return asyncio.run(sampler(task, MultiTurnEnv(turns), actor))


def nodes(rollout: Rollout) -> list[int]:
    """The node id of each turn."""
    values, start = rollout.step_values["node"], 0
    node_ids = []
    for _, response in rollout.turns:
        node_ids.append(int(values[start]))
        start += len(response.items)
    return node_ids


def end_letter(context, key):
    return "."


def count_branched(entropy, **options) -> int:
    """Number of the 600 initial rollouts of two turns from which another rollout branches off."""
    sampler = EntropyBranching(leaves=1200, initial_rollouts=600, entropy_tokens=1, **options)
    group = sample(sampler, actor_with_entropy(*entropy, text=end_letter), turns=2)
    initial_nodes = [nodes(r)[0] for r in group.rollouts if nodes(r)[0] < 600]
    return len(initial_nodes) - len(set(initial_nodes))


@pytest.mark.parametrize(
    ("entropy_increase", "probability"),
    fast_cases(
        1, [(1.0, 0.7), (0.0, 0.5), (-3.0, 0.0), (9.0, 1.0)]
    ),  # .5 + .2 dH, clipped to 0 and 1
)
def test_branch_probability_grows_with_the_increase_of_entropy(entropy_increase, probability):
    # turns of one token: in units of the maximum, 2, entropy rises from 8 / 2 by dH
    count = count_branched((8.0, 8.0 + 2 * entropy_increase))
    assert count == pytest.approx(600 * probability, abs=3.5 * (600 * 0.25) ** 0.5)
    assert count == 600 * probability or 0 < probability < 1


def test_entropies_of_the_first_tokens_are_summed():
    long_turns = actor_with_entropy(
        0.0, 1.0, text=lambda context, key: "." if len(context) % 10 == 9 else "x"
    )
    always = EntropyBranching(
        leaves=2, initial_rollouts=1, branch_prob=0.0, entropy_weight=1.0, entropy_tokens=2
    )
    group = sample(always, long_turns, turns=2)
    assert len({nodes(r)[0] for r in group.rollouts}) == 1  # dH is 2 x 1 / 2
    never = replace(always, entropy_weight=-1.0)
    group = sample(never, long_turns, turns=2)
    assert len({nodes(r)[0] for r in group.rollouts}) == 2


def test_branch_shares_the_turns_before_the_branching_turn_only():
    sampler = EntropyBranching(leaves=2, initial_rollouts=1, branch_prob=1.0)
    first, branch = sample(sampler, actor_with_entropy(0.0)).rollouts
    assert first.turns[0][1] is branch.turns[0][1]
    assert first.turns[1][0] == branch.turns[1][0] == "R1"
    assert nodes(first)[0] == nodes(branch)[0]
    assert not set(nodes(first)[1:]) & set(nodes(branch)[1:])
    assert not set(streams(first)[1:]) & set(streams(branch)[1:])


def test_branch_is_branched_only_after_a_turn_of_its_own():
    sampler = EntropyBranching(leaves=9, initial_rollouts=1, branch_prob=1.0)
    group = sample(sampler, actor_with_entropy(0.0))
    # round 2: a branch after the first turn; round 3: one after the second; round 4: one after
    # the second turn of the branch; then all have ended, and new paths start one after another
    paths = [nodes(r) for r in group.rollouts]
    shared = [sum(path[:n] == paths[0][:n] for path in paths) for n in (1, 2)]
    assert shared == [4, 2]


def test_branches_sets_the_number_of_paths_after_a_branching():
    sampler = EntropyBranching(leaves=4, initial_rollouts=1, branches=4, branch_prob=1.0)
    group = sample(sampler, actor_with_entropy(0.0), turns=2)
    assert len({nodes(r)[0] for r in group.rollouts}) == 1
    assert len({nodes(r)[1] for r in group.rollouts}) == 4


def test_new_paths_start_from_the_prompt_when_all_have_ended():
    group = sample(
        EntropyBranching(leaves=5, initial_rollouts=2, branch_prob=0.0, entropy_weight=0.0),
        actor_with_entropy(0.0),
    )
    assert len({nodes(r)[0] for r in group.rollouts}) == 5


@pytest.mark.parametrize("leaves", [1, 2, 5, 16])
def test_group_has_the_requested_number_of_leaves(leaves):
    for key in range(10):
        actor = actor_with_entropy(1.0, 3.0, 2.0).fork(key)
        group = sample(EntropyBranching(leaves, initial_rollouts=4), actor)
        assert len(group.rollouts) == leaves
        assert len({tuple(nodes(r)) for r in group.rollouts}) == leaves
        assert len({n for r in group.rollouts for n in nodes(r)}) == len(actor.log)


def test_group_size_of_the_task_overrides_the_default():
    sampler = EntropyBranching()
    assert sampler.group_size == 16
    assert len(sample(sampler, actor_with_entropy(0.0), replace(TASK, group_size=3)).rollouts) == 3


def test_group_depends_on_its_random_stream_only():
    sampler = EntropyBranching(8, 4)
    first, repeated, other = (sample(sampler, actor_with_entropy(0.0).fork(k)) for k in (1, 1, 2))
    assert first == repeated != other


def test_node_ids_are_collated_into_batch_signals():
    group = sample(
        EntropyBranching(leaves=2, initial_rollouts=1, branch_prob=1.0),
        actor_with_entropy(0.0, text=end_letter),
    )
    batch = collate([group], lambda rows: {})
    node = batch.signals["step/node"][batch.mask].reshape(2, 3)
    assert (node[0] == node[1]).tolist() == [True, False, False]


def test_resampling_generates_the_whole_group_again():
    sampler = EntropyBranching(2, 1)
    groups = [sample(sampler, actor_with_entropy(0.0).fork(k)) for k in range(40)]
    uninformative = next(k for k, group in enumerate(groups) if not group.has_reward_variance)
    actor = actor_with_entropy(0.0).fork(uninformative)
    second = sample(sampler, actor.fork("again", 1))
    assert sample(ResampleUntilInformative(sampler, max_tries=2), actor) == second
