"""Trees that split at fixed steps, and rollouts that deviate at one step."""

import asyncio
from collections import Counter

import pytest

from grupo.rollouts.samplers import SingleStepBranching, SplitTree
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.number_policy import Walk, Weighed, steps
from tests.helpers.scripted_actor import TASK, Once, dice, script, texts

ENV = Weighed((1.0,) * 6)


def sample(sampler, actor=Walk(6), env=ENV):
    return asyncio.run(sampler(TASK, env, actor))


def step_values(group, name):
    return [[int(x) for x in r.step_values[name]] for r in group.rollouts]


def test_tree_splits_at_the_split_steps():
    group = sample(SplitTree((0, 2, 3)))
    walks = [steps(r) for r in group.rollouts]
    shared = [len({tuple(walk[: k + 1]) for walk in walks}) for k in range(6)]
    assert shared == [2, 2, 4, 8, 8, 8]
    assert all(not r.truncated and r.length == 6 for r in group.rollouts)
    assert step_values(group, "depth") == [[1, 1, 2, 3, 3, 3]] * 8


def test_responses_that_were_sampled_once_have_the_same_node_id():
    group = sample(SplitTree((0, 2)))
    assert step_values(group, "node") == [
        [1, 1, 3, 3, 3, 3],
        [1, 1, 4, 4, 4, 4],
        [2, 2, 5, 5, 5, 5],
        [2, 2, 6, 6, 6, 6],
    ]


def test_responses_before_the_first_split_are_shared_by_all_rollouts():
    group = sample(SplitTree((2,), branches=3))
    assert step_values(group, "node") == [[0, 0, n, n, n, n] for n in (1, 2, 3)]
    assert step_values(group, "depth") == [[0, 0, 1, 1, 1, 1]] * 3
    assert len({tuple(steps(r)[:2]) for r in group.rollouts}) == 1
    assert len({tuple(steps(r)[2:]) for r in group.rollouts}) == 3


def test_root_without_responses_holds_the_prompt():
    (rollout, *_) = sample(SplitTree((0, 2))).rollouts
    (prompt, first), *rest = rollout.turns
    assert (prompt, first.items, first.observation) == ("Q", (), ("Q",))
    assert all(not response.observation for _, response in rest)


def test_ended_paths_do_not_split():
    actor = script(lambda context, key: "." if len(context) == 3 else "x")
    group = sample(SplitTree((0, 1, 3, 9)), actor, Once())
    assert texts(group) == ["xx."] * 4
    assert step_values(group, "depth") == [[1, 2, 2]] * 4


def test_split_steps_that_do_not_ascend_raise_config_error():
    for split_steps in ((), (3, 0), (2, 2)):
        with pytest.raises(ConfigError, match="each above the one before"):
            SplitTree(split_steps)


def test_sibling_correlation_is_limited_and_needs_a_correlated_actor():
    for correlation in (-0.1, 1.0):
        with pytest.raises(ConfigError, match="0 or more, below 1"):
            SplitTree((0, 2), sibling_correlation=correlation)
    with pytest.raises(ConfigError, match=r"sibling_correlation: 0\.5\. Allowed: 0 for a policy"):
        sample(SplitTree((0, 2), sibling_correlation=0.5))


def test_tree_depends_on_its_random_stream_only():
    first, repeated, other = (sample(SplitTree((0, 2)), Walk(6).fork(k)) for k in (1, 1, 2))
    assert first == repeated != other


def test_rollouts_deviate_from_the_greedy_path_at_one_step():
    group = sample(SingleStepBranching(branches_per_step=3))
    deviating = [[k for k, x in enumerate(steps(r)) if x] for r in group.rollouts]
    assert deviating == [[k] for k in range(6) for _ in range(3)]
    branch_steps = [r.reward_terms["branch_step"] for r in group.rollouts]
    assert branch_steps == [float(k) for [k] in deviating]
    batch = collate([group], lambda rows: {})
    assert [row.nonzero().flatten().tolist() for row in batch.mask] == deviating
    assert len({r.reward for r in group.rollouts}) == 18


def test_branch_steps_limit_the_steps_of_deviation():
    group = sample(SingleStepBranching(branches_per_step=2, branch_steps=(1, 4, 9)))
    assert Counter(r.reward_terms["branch_step"] for r in group.rollouts) == {1.0: 2, 4.0: 2}
    with pytest.raises(ConfigError, match=r"branch_steps: \(6,\). Allowed: below 6"):
        sample(SingleStepBranching(branches_per_step=2, branch_steps=(6,)))


def test_text_rollouts_deviate_at_one_token():
    actor = script(dice).fork(4)
    group = sample(SingleStepBranching(branches_per_step=2), actor, Once())
    assert len(group.rollouts) == 2 * len({r.reward_terms["branch_step"] for r in group.rollouts})
    batch = collate([group], lambda rows: {})
    assert batch.mask.sum(1).tolist() == [1] * len(group.rollouts)


def test_group_sizes():
    assert SplitTree().group_size == len(sample(SplitTree((0, 1, 2, 3))).rollouts) == 16
    assert (SingleStepBranching(4, (0, 2)).group_size, SingleStepBranching(4).group_size) == (8, 0)
