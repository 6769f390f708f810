from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.aux_heads import LinearHead
from grupo.methods.flowrl import FlowBalanceLoss, flowrl
from grupo.testing.batches import make_batch, perturb_logp

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
    assert flowrl().requires.heads == (LinearHead("log_partition"),)
    assert flowrl().requires.signals == {"logp@ref"}
    assert flowrl().requires.recomputed_signals == {"log_partition"}


def test_defaults_match_reference_implementation():
    assert flowrl().loss == FlowBalanceLoss(reward_scale=15.0, clip_eps=0.2)


def test_update_plan_is_the_released_one():
    assert flowrl().updates == Updates(minibatches=16)
