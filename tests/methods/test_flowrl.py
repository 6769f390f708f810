from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.methods.flowrl import FlowBalanceLoss, flowrl
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import six

# mean log pi - mean log ref: (0.1 - 0.3) / 2 = -0.1 and 0.5
BATCH = make_batch([0, 0], length=[2, 1], advantage=[0.02, -0.03])
MOVES = [[0.1, -0.3], [0.5, 9.0]]


def flow_signals(batch=BATCH, moves=MOVES, log_z=((0.4, 7.0), (-0.2, 7.0))):
    pi = perturb_logp(batch, moves)
    pi["log_partition"] = torch.tensor(log_z).double().requires_grad_()
    return pi


def test_trajectory_balance_loss_and_gradient():
    pi, method = flow_signals(), flowrl(reward_scale=15.0, clip_eps=0.2)
    miss = [0.4 - 0.1 - 0.3, -0.2 + 0.5 + 0.45]  # 0 and 0.75
    w = [exp(-0.2), 1.2]  # product of ratios; e^0.5 is clipped
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    assert loss.item() == pytest.approx(w[1] * miss[1] ** 2 / 2)
    by_logp, by_log_z = torch.autograd.grad(loss, [pi.logp, pi["log_partition"]])
    slope = w[1] * miss[1]  # of the mean over two answers
    assert by_logp[BATCH.mask].tolist() == pytest.approx([0.0, 0.0, slope], abs=1e-7)
    assert by_log_z.flatten().tolist() == pytest.approx([0.0, 0.0, slope, 0.0], abs=1e-7)


def test_partition_is_predicted_before_first_action():
    mask = torch.tensor([[False, True], [True, False]])
    late = replace(BATCH, mask=mask)
    loss = FlowBalanceLoss(reward_scale=0.0, clip_eps=0.2)(
        flow_signals(late, [[9.0, 0.0], [0.0, 9.0]]), late
    )
    assert loss[:, 0].tolist() == pytest.approx([49.0, 0.04])


def test_requires_partition_head_and_reference():
    assert flowrl().aux_heads == (LinearHead("log_partition"),)
    assert flowrl().precomputed_signals == {"logp@ref"}
    assert flowrl().loss.recomputed_signals == {"log_partition"}


def test_defaults_match_reference_implementation():
    assert flowrl().loss == FlowBalanceLoss(reward_scale=15.0, clip_eps=0.2)


def test_matches_reference_implementation():
    # Xuekai-Zhu/FlowRL @ decbc57, verl@FlowRL/verl/workers/actor/dp_actor.py,
    # compute_flowrl_objective; inputs as below. It computes the clip and multiplies by the raw
    # w: here w is within the clip.
    signals = {
        "logp@ref": [
            [-1.1, -0.7, -1.5],
            [-0.6, -1.4, 9.0],
            [-1.2, 9.0, 9.0],
            [-0.2, -1.3, 9.0],
            [-1.0, -0.9, -0.8],
            [-1.1, 9.0, 9.0],
        ]
    }
    batch = six(advantage=[1.2, -0.7, -0.5, 0.6, 0.9, -1.5], signals=signals)
    method = flowrl()
    pi = perturb_logp(
        batch,
        [
            [0.1, -0.2, 0.05],
            [0.25, -0.15, 0.0],
            [-0.15, 0, 0],
            [-0.1, 0.2, 0],
            [-0.05, -0.25, 0.15],
            [0.1, 0, 0],
        ],
    )
    log_z = [[z, 7.0, 7.0] for z in [0.4, -0.2, 0.1, 0.3, -0.5, 0.2]]
    pi["log_partition"] = torch.tensor(log_z).double()
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(213.5717, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    rows = [
        [-1.86899, -1.86899, -1.86899],
        [1.91563, 1.91563],
        [2.223496],
        [-1.630127, -1.630127],
        [-1.33091, -1.33091, -1.33091],
        [8.288782],
    ]
    numbers = [x for row in rows for x in row]
    assert gradient[batch.mask].tolist() == pytest.approx(numbers, rel=1e-5, abs=1e-9)
