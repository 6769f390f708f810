"""Trees that split at fixed places, and paths left once."""

import asyncio
from collections import Counter

import pytest

from grupo.core.errors import ConfigError
from grupo.rollouts.samplers import SingleStepBranching, SplitTree
from grupo.training.collate import collate
from tests.helpers.number_policy import Walk, Weighed, steps
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

WORLD = Weighed((1.0,) * 6)


def sample(sampler, act=Walk(6), env=WORLD):
    return asyncio.run(sampler(TASK, env, act))


def marks(group, name):
    return [[int(x) for x in r.step_values[name]] for r in group.rollouts]


def test_a_tree_splits_where_it_is_told_to():
    group = sample(SplitTree((0, 2, 3)))
    walks = [steps(r) for r in group.rollouts]
    shared = [len({tuple(walk[: k + 1]) for walk in walks}) for k in range(6)]
    assert shared == [2, 2, 4, 8, 8, 8]
    assert all(not r.truncated and r.length == 6 for r in group.rollouts)
    assert marks(group, "depth") == [[1, 1, 2, 3, 3, 3]] * 8


def test_nodes_have_the_same_number_where_they_were_drawn_once():
    group = sample(SplitTree((0, 2)))
    assert marks(group, "node") == [
        [1, 1, 3, 3, 3, 3],
        [1, 1, 4, 4, 4, 4],
        [2, 2, 5, 5, 5, 5],
        [2, 2, 6, 6, 6, 6],
    ]


def test_a_trunk_before_the_first_split_is_everybodys():
    group = sample(SplitTree((2,), branches=3))
    assert marks(group, "node") == [[0, 0, n, n, n, n] for n in (1, 2, 3)]
    assert marks(group, "depth") == [[0, 0, 1, 1, 1, 1]] * 3
    assert len({tuple(steps(r)[:2]) for r in group.rollouts}) == 1
    assert len({tuple(steps(r)[2:]) for r in group.rollouts}) == 3


def test_a_root_of_no_actions_has_heard_the_prompt_once():
    (rollout, *_) = sample(SplitTree((0, 2))).rollouts
    (seen, first), *rest = rollout.turns
    assert (seen, first.items, first.observation) == ("Q", (), ("Q",))
    assert all(not action.observation for _, action in rest)


def test_paths_that_are_over_split_no_more():
    act = script(lambda read, key: "." if len(read) == 3 else "x")
    group = sample(SplitTree((0, 1, 3, 9)), act, Once())
    assert texts(group) == ["xx."] * 4
    assert marks(group, "depth") == [[1, 2, 2]] * 4


def test_places_that_do_not_ascend_are_refused():
    for at in ((), (3, 0), (2, 2), (-1, 2)):
        with pytest.raises(ConfigError, match="each above the one before"):
            SplitTree(at)


def test_chance_is_shared_in_part_where_that_can_be():
    for alike in (-0.1, 1.0):
        with pytest.raises(ConfigError, match="0 or more and below 1"):
            SplitTree((0, 2), sibling_correlation=alike)
    with pytest.raises(ConfigError, match=r"sibling_correlation: 0\.5\. Allowed: 0 for a policy"):
        sample(SplitTree((0, 2), sibling_correlation=0.5))


def test_a_tree_is_its_streams_own():
    first, again, other = (sample(SplitTree((0, 2)), Walk(6).fork(k)) for k in (1, 1, 2))
    assert first == again != other


def test_a_path_is_left_by_one_action_and_gone_on_with_as_before():
    group = sample(SingleStepBranching(branches_per_step=3))
    moved = [[k for k, x in enumerate(steps(r)) if x] for r in group.rollouts]
    assert moved == [[k] for k in range(6) for _ in range(3)]
    assert [r.reward_terms["branch_step"] for r in group.rollouts] == [float(k) for [k] in moved]
    batch = collate([group], lambda rows: {})
    assert [row.nonzero().flatten().tolist() for row in batch.mask] == moved
    assert len({r.reward for r in group.rollouts}) == 18


def test_only_some_places_may_be_left():
    group = sample(SingleStepBranching(branches_per_step=2, branch_steps=(1, 4, 9)))
    assert Counter(r.reward_terms["branch_step"] for r in group.rollouts) == {1.0: 2, 4.0: 2}
    with pytest.raises(ConfigError, match=r"branch_steps: \(6,\). Allowed: below 6"):
        sample(SingleStepBranching(branches_per_step=2, branch_steps=(6,)))


def test_words_are_left_and_gone_on_with_too():
    act = script(dice).fork(4)
    group = sample(SingleStepBranching(branches_per_step=2), act, Once())
    assert len(group.rollouts) == 2 * len({r.reward_terms["branch_step"] for r in group.rollouts})
    batch = collate([group], lambda rows: {})
    assert batch.mask.sum(1).tolist() == [1] * len(group.rollouts)


def test_how_many_rollouts_a_group_has():
    assert SplitTree().group_size == len(sample(SplitTree((0, 1, 2, 3))).rollouts) == 16
    assert (SingleStepBranching(4, (0, 2)).group_size, SingleStepBranching(4).group_size) == (8, 0)
