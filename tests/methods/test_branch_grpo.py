"""BranchGRPO: four leaves of a tree that split twice, and the tree of the released run."""

from dataclasses import replace
from itertools import pairwise
from math import log, sqrt

import pytest
import torch

from grupo.algo.advantages import ClampAdvantage, chain
from grupo.algo.advantages.tree import (
    BestOfSiblings,
    DedupTokenMean,
    NormalizePerDepth,
    OutsideWindow,
    TopBottomLeaves,
)
from grupo.algo.losses import Clip
from grupo.core.schedules import Linear, resolve_schedules
from grupo.methods.branch_grpo import branch_grpo
from grupo.rollouts.samplers import SplitTree
from grupo.testing.batches import make_batch, perturb_logp

REWARD = [0.2, 0.6, 1.0, 0.8]
NODES = [[1, 3], [1, 4], [2, 5], [2, 6]]


def tree(reward=REWARD, nodes=NODES, depth=(1, 2), length=None, group=None):
    marks = {"step/node": nodes, "step/depth": [list(depth)] * len(reward)}
    length = length or [len(depth)] * len(reward)
    return make_batch(group or [0] * len(reward), reward, length=length, signals=marks)


def advantage_of(batch):
    return NormalizePerDepth(eps=0.0)(batch.reward, batch)


def test_nodes_are_compared_within_their_depth():
    A = advantage_of(tree())
    # .4 and .9: off by .25, std sqrt(2 x .25^2)
    assert A[:, 0].tolist() == pytest.approx([-sqrt(0.5)] * 2 + [sqrt(0.5)] * 2)
    # mean .65, off by -.45, -.05, .35, .15, std sqrt((.2025 + .0025 + .1225 + .0225) / 3)
    off = [-0.45, -0.05, 0.35, 0.15]
    assert A[:, 1].tolist() == pytest.approx([x / sqrt(0.35 / 3) for x in off])
    assert A[:, 1].tolist() == pytest.approx([-1.317, -0.146, 1.025, 0.439], abs=5e-4)


def test_all_steps_of_a_node_have_its_advantage():
    long = tree(nodes=[[a, a, b] for a, b in NODES], depth=(1, 1, 2))
    assert torch.allclose(advantage_of(long)[:, [0, 2]], advantage_of(tree()))
    assert torch.equal(advantage_of(long)[:, 0], advantage_of(long)[:, 1])


def test_common_prefix_and_equal_rewards_have_advantage_0():
    trunk = tree(nodes=[[0, *row] for row in NODES], depth=(0, 1, 2))
    assert NormalizePerDepth()(trunk.reward, trunk)[:, 0].tolist() == pytest.approx(
        [0.0] * 4, abs=1e-9
    )
    assert NormalizePerDepth()(torch.full((4,), 0.3), tree()).abs().max() < 1e-6


def test_node_counts_once_whatever_its_number_of_leaves():
    uneven = tree([0.0, 0.0, 0.9], [[1, 3], [1, 4], [2, 5]])
    # of depth 1 the nodes are worth 0 and .9, not 0, 0 and .9
    assert advantage_of(uneven)[:, 0].tolist() == pytest.approx([-sqrt(0.5)] * 2 + [sqrt(0.5)])


def test_nodes_are_separate_between_groups():
    two = tree(REWARD + REWARD[::-1], NODES + NODES, group=[0] * 4 + [1] * 4)
    assert torch.allclose(advantage_of(two)[:4], advantage_of(tree()))
    assert torch.allclose(advantage_of(two)[4:], advantage_of(tree(REWARD[::-1])))


def test_shared_step_counts_once():
    # six steps: two shared by two leaves each, and four
    wanted = [[1 / 12, 1 / 6]] * 4
    assert DedupTokenMean()(tree()).tolist() == [pytest.approx(row) for row in wanted]


def test_logp_coef_weights_likelier_leaves_more():
    nodes = [[1, 4], [1, 5], [2, 6], [3, 7]]
    batch = tree([0.2, 0.6, 0.9, 0.6], nodes)
    logp = [[-2.0, log(3)], [-2.0, 0.0], [-7.0, 1.0], [0.0, 0.0]]
    batch = replace(batch, old_logp=torch.tensor(logp, dtype=torch.float64))
    # (3 x .2 + .6) / 4 = .3 beside .9 and .6: mean .6, std .3
    A = NormalizePerDepth(eps=0.0, logp_coef=1.0)(batch.reward, batch)
    assert A[:, 0].tolist() == pytest.approx([-1.0, -1.0, 1.0, 0.0])
    # with fusion 2 (9 x .2 + .6) / 10 = .24: off -.34, .32 and .02 of .58
    A = NormalizePerDepth(eps=0.0, logp_coef=2.0)(batch.reward, batch)
    std = sqrt((0.34**2 + 0.32**2 + 0.02**2) / 2)
    assert A[1:, 0].tolist() == pytest.approx([-0.34 / std, 0.32 / std, 0.02 / std])
    assert torch.equal(A[:, 1], NormalizePerDepth(eps=0.0)(batch.reward, batch)[:, 1])


def last_depth_mask(where, reward=REWARD, **more):
    """Which leaves go on after the split's own step; before that everything is in."""
    batch = tree(reward, [[a, b, b] for a, b in NODES] * (len(reward) // 4), (1, 2, 2), **more)
    kept = where(batch.with_advantage(NormalizePerDepth()))
    assert kept[:, :2].all()
    return kept[:, 2].tolist()


def test_best_of_siblings_keeps_the_best_sibling():
    assert last_depth_mask(BestOfSiblings()) == [False, True, True, False]  # .2 or .6, 1 or .8
    assert last_depth_mask(BestOfSiblings(), [0.5, 0.5, 0.0, 0.1]) == [True, True, False, True]


def test_top_bottom_leaves_keeps_best_and_worst():
    assert last_depth_mask(TopBottomLeaves(1)) == [True, False, True, False]
    assert all(last_depth_mask(TopBottomLeaves(2)))
    two = last_depth_mask(
        TopBottomLeaves(1), [*REWARD, 0.0, 0.9, 0.3, 0.5], group=[0] * 4 + [1] * 4
    )
    assert two == [True, False, True, False, True, True, False, False]


def test_siblings_share_one_split():
    batch = tree(nodes=[[1, 1], [2, 2], [1, 1], [2, 2]], depth=(1, 1), group=[0, 0, 1, 1])
    kept = BestOfSiblings()(batch.with_advantage(NormalizePerDepth()))
    assert kept.tolist() == [[True, False], [True, True], [True, True], [True, False]]


def test_pruned_steps_have_weight_0_and_weights_sum_to_1():
    batch = tree(nodes=[[a, b, b] for a, b in NODES], depth=(1, 2, 2)).with_advantage(
        NormalizePerDepth()
    )
    weight = DedupTokenMean((BestOfSiblings(),))(batch)
    # eight steps: two shared by two leaves each, four, and two of the four after them
    wanted = [
        [1 / 16, 1 / 8, 0],
        [1 / 16, 1 / 8, 1 / 8],
        [1 / 16, 1 / 8, 1 / 8],
        [1 / 16, 1 / 8, 0],
    ]
    assert weight.tolist() == [pytest.approx(row) for row in wanted]
    assert DedupTokenMean((OutsideWindow(0, 3),))(batch).eq(0).all()


def released_tree(reward=tuple(range(16))):
    """Sixteen leaves of 20 steps; splits before the steps 0, 3, 6 and 9."""
    heap = [[(1 << d) - 1 + (leaf >> (4 - d)) for d in (1, 2, 3, 4)] for leaf in range(16)]
    ends = [end - start for start, end in pairwise((0, 3, 6, 9, 20))]
    nodes = [[n for n, k in zip(row, ends, strict=True) for _ in range(k)] for row in heap]
    depth = [d for d, k in enumerate(ends, 1) for _ in range(k)]
    return tree([float(x) for x in reward], nodes, depth).with_advantage(NormalizePerDepth())


def test_released_tree_has_218_of_320_steps():
    weight = DedupTokenMean()(released_tree())
    assert weight.numel() == 320
    assert weight.sum().item() == pytest.approx(1.0)
    assert weight[0, -1].item() == pytest.approx(1 / 218)
    assert weight[0, 0].item() == pytest.approx(1 / 218 / 8)


@pytest.mark.parametrize(
    ("where", "steps"),
    [
        (BestOfSiblings(), 138),
        (TopBottomLeaves(4), 138),
        (OutsideWindow(9, 4), 154),
    ],  # 218 - 80, 218 - 64
    ids=["siblings", "extremes", "depths"],
)
def test_number_of_steps_after_pruning(where, steps):
    weight = DedupTokenMean((where,))(released_tree())
    assert weight.sum().item() == pytest.approx(1.0)
    assert weight[weight > 0].min().item() == pytest.approx(1 / steps / 8)  # shared by eight leaves
    once = weight * torch.tensor([8.0] * 3 + [4.0] * 3 + [2.0] * 3 + [1.0] * 11)
    assert once[weight > 0].unique().tolist() == pytest.approx([1 / steps])


def test_masked_window_moves_one_step_every_30_updates():
    outside = OutsideWindow(Linear(9.0, 19.0), 4)
    at_step = {n: resolve_schedules(outside, (n + 0.5) / 300) for n in (29, 30, 299)}
    held = {
        n: (~where(released_tree()))[0].nonzero().flatten().tolist() for n, where in at_step.items()
    }
    assert held == {29: [9, 10, 11, 12], 30: [10, 11, 12, 13], 299: [18, 19]}


def test_loss_and_gradient_of_a_clipped_and_an_unclipped_step():
    method = branch_grpo(clip_eps=1e-3)
    batch = tree([1.0, 0.0], [[1], [2]], depth=(1,)).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[2e-3], [2e-3]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (sqrt(0.5) + 1e-6)
    # the first is clipped at 1.001, the second not: e^.002
    assert loss.item() == pytest.approx((-1.001 * A + A * 1.002002001) / 2)
    assert slope.flatten().tolist() == pytest.approx([0.0, A * 1.002002001 / 2])


def test_defaults_are_those_of_the_released_run():
    method = branch_grpo()
    assert method.sampler == SplitTree((0, 3, 6, 9), branches=2)
    assert method.advantage == chain(NormalizePerDepth(), ClampAdvantage(-5.0, 5.0))
    assert (method.loss, method.aggregation) == (Clip(1e-3, 1e-3), DedupTokenMean())
    assert method.requires.all_signals == {"step/node", "step/depth"}


def test_options_of_the_paper():
    method = branch_grpo(
        sibling_correlation=1 / 17, logp_coef=1.0, masks=(BestOfSiblings(), OutsideWindow(9, 4))
    )
    assert method.sampler == SplitTree((0, 3, 6, 9), branches=2, sibling_correlation=1 / 17)
    assert method.advantage == chain(NormalizePerDepth(logp_coef=1.0), ClampAdvantage(-5.0, 5.0))
    assert method.aggregation == DedupTokenMean((BestOfSiblings(), OutsideWindow(9, 4)))
