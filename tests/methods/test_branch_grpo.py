"""BranchGRPO: four leaves of a tree that split twice, and the tree of the released run."""

from itertools import pairwise
from math import sqrt

import pytest
import torch

from grupo.credit import Clipped, chain
from grupo.credit.nodes import AmongDepth, EachOnce
from grupo.losses import Clip
from grupo.methods.branch_grpo import branch_grpo
from grupo.sampling import SplitTree
from grupo.testing import batch_of, moved

REWARD = [0.2, 0.6, 1.0, 0.8]
NODES = [[1, 3], [1, 4], [2, 5], [2, 6]]


def tree(reward=REWARD, nodes=NODES, depth=(1, 2), length=None, group=None):
    marks = {"mark/node": nodes, "mark/depth": [list(depth)] * len(reward)}
    length = length or [len(depth)] * len(reward)
    return batch_of(group or [0] * len(reward), reward, length=length, seen=marks)


def credited(batch):
    return AmongDepth(eps=0.0)(batch.reward, batch)


def test_nodes_are_compared_with_those_of_their_depth():
    A = credited(tree())
    # .4 and .9: off by .25, std sqrt(2 x .25^2)
    assert A[:, 0].tolist() == pytest.approx([-sqrt(0.5)] * 2 + [sqrt(0.5)] * 2)
    # mean .65, off by -.45, -.05, .35, .15, std sqrt((.2025 + .0025 + .1225 + .0225) / 3)
    off = [-0.45, -0.05, 0.35, 0.15]
    assert A[:, 1].tolist() == pytest.approx([x / sqrt(0.35 / 3) for x in off])
    assert A[:, 1].tolist() == pytest.approx([-1.317, -0.146, 1.025, 0.439], abs=5e-4)


def test_all_steps_that_lead_to_a_node_have_its_credit():
    long = tree(nodes=[[a, a, b] for a, b in NODES], depth=(1, 1, 2))
    assert torch.allclose(credited(long)[:, [0, 2]], credited(tree()))
    assert torch.equal(credited(long)[:, 0], credited(long)[:, 1])


def test_a_trunk_that_all_share_and_equal_rewards_have_none():
    trunk = tree(nodes=[[0, *row] for row in NODES], depth=(0, 1, 2))
    assert AmongDepth()(trunk.reward, trunk)[:, 0].tolist() == pytest.approx([0.0] * 4, abs=1e-9)
    assert AmongDepth()(torch.full((4,), 0.3), tree()).abs().max() < 1e-6


def test_a_node_counts_once_however_many_leaves_it_has():
    uneven = tree([0.0, 0.0, 0.9], [[1, 3], [1, 4], [2, 5]])
    # of depth 1 the nodes are worth 0 and .9, not 0, 0 and .9
    assert credited(uneven)[:, 0].tolist() == pytest.approx([-sqrt(0.5)] * 2 + [sqrt(0.5)])


def test_nodes_of_another_group_are_others():
    two = tree(REWARD + REWARD[::-1], NODES + NODES, group=[0] * 4 + [1] * 4)
    assert torch.allclose(credited(two)[:4], credited(tree()))
    assert torch.allclose(credited(two)[4:], credited(tree(REWARD[::-1])))


def test_a_shared_step_counts_once():
    # six steps: two shared by two leaves each, and four
    wanted = [[1 / 12, 1 / 6]] * 4
    assert EachOnce()(tree()).tolist() == [pytest.approx(row) for row in wanted]


def test_the_tree_of_the_released_run_has_218_steps_instead_of_320():
    heap = [[(1 << d) - 1 + (leaf >> (4 - d)) for d in (1, 2, 3, 4)] for leaf in range(16)]
    ends = [end - start for start, end in pairwise((0, 3, 6, 9, 20))]
    nodes = [[n for n, k in zip(row, ends, strict=True) for _ in range(k)] for row in heap]
    weight = EachOnce()(tree([0.0] * 16, nodes, [0] * 20))
    assert weight.numel() == 320
    assert weight.sum().item() == pytest.approx(1.0)
    assert weight[0, -1].item() == pytest.approx(1 / 218)
    assert weight[0, 0].item() == pytest.approx(1 / 218 / 8)


def test_loss_and_gradient_of_a_clipped_and_a_free_step():
    method = branch_grpo(clip=1e-3)
    batch = tree([1.0, 0.0], [[1], [2]], depth=(1,)).credited(method.credit)
    pi = moved(batch, [[2e-3], [2e-3]])
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    # the first is clipped at 1.001, the second not: e^.002
    assert loss.item() == pytest.approx((-1.001 * A + A * 1.002002001) / 2)
    assert slope.flatten().tolist() == pytest.approx([0.0, A * 1.002002001 / 2])


def test_the_defaults_are_those_of_the_released_run():
    method = branch_grpo()
    assert method.sample == SplitTree((0, 3, 6, 9), branches=2)
    assert method.credit == chain(AmongDepth(), Clipped(-5.0, 5.0))
    assert (method.loss, method.weigh) == (Clip(1e-3, 1e-3), EachOnce())
    assert method.needs == {"mark/node", "mark/depth"}
