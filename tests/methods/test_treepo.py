"""TreePO: four leaves in two subtrees."""

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.methods.treepo import AncestorAdvantage, treepo
from grupo.rollouts.samplers import SegmentTree
from grupo.testing.batches import make_batch

REWARD = [1.0, 0.0, 1.0, 1.0]
NODES = [[0, 2], [0, 3], [1, 4], [1, 5]]


def tree(reward=REWARD, nodes=NODES, length=None, group=None):
    return make_batch(
        group=group or [0] * len(reward),
        reward=reward,
        length=length or [len(nodes[0])] * len(reward),
        signals={"step/node": nodes},
    )


def advantages(batch, power=0.0):
    return AncestorAdvantage(power)(batch.reward, batch).tolist()


def test_leaf_is_compared_below_each_ancestor():
    # the group: [.25, -.75, .25, .25]; the subtrees: [.5, -.5, 0, 0]; nodes of one leaf are none
    assert advantages(tree()) == pytest.approx([0.375, -0.625, 0.125, 0.125])


def test_ancestors_may_be_weighted_by_leaf_count():
    # (4 x .25 + 2 x .5) / 6, (4 x -.75 + 2 x -.5) / 6, (4 x .25 + 2 x 0) / 6
    assert advantages(tree(), 1.0) == pytest.approx([1 / 3, -2 / 3, 1 / 6, 1 / 6])


def test_node_counts_once_regardless_of_token_count():
    long = tree(nodes=[[0, 0, 0, 2], [0, 0, 0, 3], [1, 1, 1, 4], [1, 1, 1, 5]])
    assert advantages(long) == advantages(tree())


def test_every_depth_counts_without_branches():
    chain = tree([1.0, 0.0, 0.0], nodes=[[0, 2, 3], [0, 2, 4], [1, 5, 6]])
    # the group: 2/3, -1/3, -1/3; nodes 0 and 2, of the same two leaves: .5, -.5 each
    expected = [(2 / 3 + 0.5 + 0.5) / 3, (-1 / 3 - 0.5 - 0.5) / 3, -1 / 3]
    assert advantages(chain) == pytest.approx(expected)


def test_nodes_are_local_to_group():
    two_groups = tree(REWARD + REWARD[::-1], NODES + NODES, group=[0] * 4 + [1] * 4)
    assert advantages(two_groups)[:4] == advantages(tree())
    assert advantages(two_groups)[4:] == advantages(tree(REWARD[::-1]))


def test_leaf_without_shared_nodes_is_compared_with_group_only():
    disjoint = tree([1.0, 0.0], nodes=[[0], [1]])
    assert advantages(disjoint) == [0.5, -0.5]
    assert advantages(tree([1.0], nodes=[[0]])) == [0.0]


def test_masked_tokens_are_ignored():
    short = tree(nodes=[[0, 9], [0, 9], [1, 9], [1, 9]], length=[2, 1, 1, 1])
    assert advantages(short) == pytest.approx([0.375, -0.625, 0.125, 0.125])


def test_advantages_are_whitened_over_all_tokens():
    A = tree().with_advantage(treepo().advantage).advantage
    raw = torch.tensor([0.375, -0.625, 0.125, 0.125]).double().repeat_interleave(2)
    assert A.flatten().tolist() == pytest.approx((raw / raw.std()).tolist())  # their mean is 0


def test_defaults_match_release():
    method = treepo()
    assert method.sampler == SegmentTree(16, 512, 14, branches=2, max_initial_branches=8)
    assert (method.loss, method.aggregation, method.filter) == (
        Clip(0.2, 0.28),
        token_mean,
        keep_nonzero_std,
    )
    assert method.requires.all_signals == {"step/node"}
