"""Trees of token segments."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from grupo.core.types import Group, Rollout
from grupo.rollouts.samplers import ResampleUntilInformative, SegmentTree
from grupo.training.update.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts


def sample(sampler, actor, task=TASK, env=None) -> Group:
    return asyncio.run(sampler(task, env or Once(), actor))


def nodes(rollout: Rollout) -> list[int]:
    """The node id of each segment; -1 for an empty one."""
    values, start = rollout.step_values["node"], 0
    node_ids = []
    for _, response in rollout.turns:
        assert len(set(values[start : start + len(response.items)])) <= 1
        node_ids.append(int(values[start]) if response.items else -1)
        start += len(response.items)
    return node_ids


def test_unending_tree_reaches_its_maximum_width_and_depth():
    actor = script(lambda context, key: "x")
    group = sample(
        SegmentTree(leaves=8, segment_tokens=3, max_depth=4, branches=2, max_initial_branches=2),
        actor,
    )
    # 2 segments, then 4, then 8, and 8 again, the maximum: 22 segments instead of 8 x 4
    assert texts(group) == ["x" * 12] * 8
    assert all(r.truncated for r in group.rollouts)
    assert Counter(len(context) for context, _ in actor.log) == {1: 2, 4: 4, 7: 8, 10: 8}
    assert [len(set(n)) for n in zip(*map(nodes, group.rollouts), strict=True)] == [2, 4, 8, 8]


def test_leaves_share_the_responses_of_their_common_segments():
    group = sample(SegmentTree(4, 3, 2, 2, 2), script(lambda context, key: "x"))
    responses = [r.turns[0][1] for r in group.rollouts]
    assert responses[0] is responses[1]
    assert responses[2] is responses[3]
    assert responses[0] is not responses[2]
    assert [n[0] for n in map(nodes, group.rollouts)] == [0, 0, 1, 1]


def test_branches_are_distributed_evenly_over_active_paths():
    group = sample(
        SegmentTree(7, 3, 2, branches=4, max_initial_branches=4), script(lambda context, key: "x")
    )
    leaves_per_node = Counter(nodes(r)[0] for r in group.rollouts)
    assert leaves_per_node == {0: 2, 1: 2, 2: 2, 3: 1}


def test_branches_of_ended_paths_go_to_the_active_ones():
    letters = iter(".")  # the first segment ends its path, all others continue
    actor = script(lambda context, key: next(letters, "x"))
    group = sample(
        SegmentTree(leaves=9, segment_tokens=1, max_depth=2, branches=2, max_initial_branches=2),
        actor,
    )
    # "." ends one of two paths; its two branches go to the other, which then has 4
    assert Counter(texts(group)[:5]) == {".": 1, "xx": 4}
    assert [nodes(r)[0] for r in group.rollouts[:5]] == [0, 1, 1, 1, 1]


def test_ended_paths_are_cut_and_continued_when_leaves_are_missing():
    """Each path ends after six letters; only its first segments can be shared."""
    actor = script(lambda context, key: "." if len(context) == 6 else "x")
    group = sample(
        SegmentTree(leaves=5, segment_tokens=2, max_depth=9, branches=1, max_initial_branches=1),
        actor,
    )
    assert texts(group) == ["xxxxx."] * 5
    first, *others = map(nodes, group.rollouts)
    assert first == [0, 1, 2]
    shared = [sum(a == b for a, b in zip(first, other, strict=True)) for other in others]
    assert max(shared) > 0  # cut at the start of the second or third segment
    assert all(other[:n] == first[:n] for n, other in zip(shared, others, strict=True))
    num_generated = sum(len(text) for _, text in actor.log)
    node_ids = {n for r in group.rollouts for n in nodes(r)}
    assert num_generated == 2 * len(node_ids) < 5 * 6  # no segment was generated twice


def test_truncated_paths_are_not_continued():
    endless = script(lambda context, key: "x")
    group = sample(
        SegmentTree(leaves=3, segment_tokens=2, max_depth=2, branches=1, max_initial_branches=1),
        endless,
    )
    assert len({nodes(r)[0] for r in group.rollouts}) == 3  # all start from the prompt


@pytest.mark.parametrize("leaves", [1, 2, 5, 16])
def test_group_has_the_requested_number_of_leaves(leaves):
    for key in range(20):
        actor = script(dice).fork(key)
        group = sample(
            SegmentTree(leaves, segment_tokens=2, max_depth=4, branches=2, max_initial_branches=8),
            actor,
        )
        assert len(group.rollouts) == leaves
        assert len({tuple(nodes(r)) for r in group.rollouts}) == leaves
        node_ids = {node for r in group.rollouts for node in nodes(r)}
        assert len(node_ids) == len(actor.log)  # every segment belongs to a leaf


def test_group_size_of_the_task_overrides_the_default():
    sampler = SegmentTree(16, 2, 4)
    assert sampler.group_size == 16
    assert len(sample(sampler, script(dice), replace(TASK, group_size=3)).rollouts) == 3


def test_tree_depends_on_its_stream_only_and_each_segment_has_its_own():
    sampler = SegmentTree(8, segment_tokens=2, max_depth=4)
    first, repeated, other = (sample(sampler, script(dice).fork(k)) for k in (1, 1, 2))
    assert first == repeated != other
    segment_streams = {s for r in first.rollouts for s in streams(r)}
    assert len(segment_streams) == len({n for r in first.rollouts for n in nodes(r)})


def test_node_ids_are_collated_into_batch_signals():
    group = sample(SegmentTree(4, 3, 2, 2, 2), script(lambda context, key: "x"))
    batch = collate([group], lambda rows: {})
    assert batch.signals["step/node"][:, 0].tolist() == [0, 0, 1, 1]
    assert batch.mask.all()
    assert batch.signals["step/node"][:, 3].tolist() == [2, 3, 4, 5]


def test_later_turns_belong_to_the_leaf():
    class TwoTurnEnv(Once):
        async def reply(self, task, rollout):
            observations = [observation for observation, _ in rollout.turns if observation]
            return ("Q", "R", None)[len(observations)]

    actor = replace(script(dice), max_new_tokens=4)
    group = sample(SegmentTree(4, 2, 2, 2, 2), actor, env=TwoTurnEnv())
    for rollout in group.rollouts:
        assert [x for x, _ in rollout.turns if x] == ["Q", "R"]
    last_nodes = [nodes(r)[-2:] for r in group.rollouts]
    assert all(a == b for a, b in last_nodes)
    assert len({a for a, _ in last_nodes}) == 4


def test_resampling_generates_the_whole_tree_again():
    sampler, env = SegmentTree(2, 2, 2, 2, 2), Once(lambda text: "c" in text)
    groups = [sample(sampler, script(dice).fork(k), env=env) for k in range(60)]
    uninformative = next(k for k, group in enumerate(groups) if not group.has_reward_variance)
    actor = script(dice).fork(uninformative)
    second = sample(sampler, actor.fork("again", 1), env=env)
    assert sample(ResampleUntilInformative(sampler, max_tries=2), actor, env=env) == second
