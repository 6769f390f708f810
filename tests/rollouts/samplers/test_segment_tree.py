"""Trees of segments."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from grupo.core.types import Group, Rollout
from grupo.rollouts.samplers import ResampleUntilInformative, SegmentTree
from grupo.training.collate import collate
from tests.helpers.scripted_actor import TASK, Once, dice, script, streams, texts


def sample(sampler, act, task=TASK, env=None) -> Group:
    return asyncio.run(sampler(task, env or Once(), act))


def nodes(rollout: Rollout) -> list[int]:
    """The number of each segment's node."""
    marks, found, begin = rollout.step_values["node"], [], 0
    for _, action in rollout.turns:
        assert len(set(marks[begin : begin + len(action.items)])) <= 1
        found.append(int(marks[begin]) if action.items else -1)
        begin += len(action.items)
    return found


def test_a_tree_that_never_ends_is_as_wide_and_deep_as_it_may():
    act = script(lambda read, key: "x")
    group = sample(
        SegmentTree(leaves=8, segment_tokens=3, max_depth=4, branches=2, max_initial_branches=2),
        act,
    )
    # 2 begin it, then 4, then 8, and for want of room 8 again: 22 segments instead of 8 x 4
    assert texts(group) == ["x" * 12] * 8
    assert all(r.truncated for r in group.rollouts)
    assert Counter(len(read) for read, _ in act.log) == {1: 2, 4: 4, 7: 8, 10: 8}
    assert [len(set(n)) for n in zip(*map(nodes, group.rollouts), strict=True)] == [2, 4, 8, 8]


def test_leaves_share_the_actions_they_have_in_common():
    group = sample(SegmentTree(4, 3, 2, 2, 2), script(lambda read, key: "x"))
    first = [r.turns[0][1] for r in group.rollouts]
    assert first[0] is first[1]
    assert first[2] is first[3]
    assert first[0] is not first[2]
    assert [n[0] for n in map(nodes, group.rollouts)] == [0, 0, 1, 1]


def test_room_is_spread_evenly_over_the_paths_that_are_alive():
    group = sample(
        SegmentTree(7, 3, 2, branches=4, max_initial_branches=4), script(lambda read, key: "x")
    )
    counted = Counter(nodes(r)[0] for r in group.rollouts)
    assert counted == {0: 2, 1: 2, 2: 2, 3: 1}


def test_ways_that_have_ended_are_given_to_others():
    letters = iter(".")  # the first segment ends a rollout, all others go on
    act = script(lambda read, key: next(letters, "x"))
    group = sample(
        SegmentTree(leaves=9, segment_tokens=1, max_depth=2, branches=2, max_initial_branches=2),
        act,
    )
    # "." ends one of two; its two ways go to the other, 4 in all, though there is room for 8
    assert Counter(texts(group)[:5]) == {".": 1, "xx": 4}
    assert [nodes(r)[0] for r in group.rollouts[:5]] == [0, 1, 1, 1, 1]


def test_where_all_are_over_some_are_cut_and_go_on():
    """Each path says so many letters and ends; only its beginning can be shared."""
    act = script(lambda read, key: "." if len(read) == 6 else "x")
    group = sample(
        SegmentTree(leaves=5, segment_tokens=2, max_depth=9, branches=1, max_initial_branches=1),
        act,
    )
    assert texts(group) == ["xxxxx."] * 5
    first, *others = map(nodes, group.rollouts)
    assert first == [0, 1, 2]
    shared = [sum(a == b for a, b in zip(first, other, strict=True)) for other in others]
    assert max(shared) > 0  # cut at the beginning of the second or of the third
    assert all(other[:n] == first[:n] for n, other in zip(shared, others, strict=True))
    said = sum(len(said) for _, said in act.log)
    drawn = {n for r in group.rollouts for n in nodes(r)}
    assert said == 2 * len(drawn) < 5 * 6  # no segment was said twice


def test_paths_that_were_cut_short_are_not_gone_on_from():
    short = script(lambda read, key: "x")
    group = sample(
        SegmentTree(leaves=3, segment_tokens=2, max_depth=2, branches=1, max_initial_branches=1),
        short,
    )
    assert len({nodes(r)[0] for r in group.rollouts}) == 3  # all from the beginning


@pytest.mark.parametrize("leaves", [1, 2, 5, 16])
def test_there_are_as_many_leaves_as_asked_for(leaves):
    for key in range(20):
        act = script(dice).fork(key)
        group = sample(
            SegmentTree(leaves, segment_tokens=2, max_depth=4, branches=2, max_initial_branches=8),
            act,
        )
        assert len(group.rollouts) == leaves
        assert len({tuple(nodes(r)) for r in group.rollouts}) == leaves
        said = {node: None for r in group.rollouts for node in nodes(r)}
        assert len(said) == len(act.log)  # every segment is some leaf's


def test_a_task_may_say_how_many_attempts_it_wants():
    sampler = SegmentTree(16, 2, 4)
    assert sampler.group_size == 16
    assert len(sample(sampler, script(dice), replace(TASK, group_size=3)).rollouts) == 3


def test_a_tree_is_its_streams_own_and_every_segment_has_one():
    sampler = SegmentTree(8, segment_tokens=2, max_depth=4)
    first, again, other = (sample(sampler, script(dice).fork(k)) for k in (1, 1, 2))
    assert first == again != other
    drawn = {s for r in first.rollouts for s in streams(r)}
    assert len(drawn) == len({n for r in first.rollouts for n in nodes(r)})


def test_marks_reach_the_batch_and_are_of_the_groups_own():
    group = sample(SegmentTree(4, 3, 2, 2, 2), script(lambda read, key: "x"))
    batch = collate([group], lambda rows: {})
    assert batch.signals["step/node"][:, 0].tolist() == [0, 0, 1, 1]
    assert batch.mask.all()
    assert batch.signals["step/node"][:, 3].tolist() == [2, 3, 4, 5]


def test_what_follows_after_the_world_has_spoken_again_is_of_the_leaf():
    class Twice(Once):
        async def reply(self, task, rollout):
            heard = [seen for seen, _ in rollout.turns if seen]
            return ("Q", "R", None)[len(heard)]

    act = replace(script(dice), max_new_tokens=4)
    group = sample(SegmentTree(4, 2, 2, 2, 2), act, env=Twice())
    assert all([seen for seen, _ in r.turns if seen] == ["Q", "R"] for r in group.rollouts)
    lasts = [nodes(r)[-2:] for r in group.rollouts]
    assert all(a == b for a, b in lasts)
    assert len({a for a, _ in lasts}) == 4


def test_the_tree_is_sampled_again_as_a_whole():
    sampler, env = SegmentTree(2, 2, 2, 2, 2), Once(lambda text: "c" in text)
    tries = [sample(sampler, script(dice).fork(k), env=env) for k in range(60)]
    unlucky = next(k for k, group in enumerate(tries) if not group.has_reward_variance)
    act = script(dice).fork(unlucky)
    again = sample(sampler, act.fork("again", 1), env=env)
    assert sample(ResampleUntilInformative(sampler, max_tries=2), act, env=env) == again
