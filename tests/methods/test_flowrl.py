from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.helpers import Head
from grupo.methods.flowrl import FlowBalance, flowrl
from grupo.testing import batch_of, moved

# mean log pi - mean log ref: (0.1 - 0.3) / 2 = -0.1 and 0.5
BATCH = batch_of([0, 0], length=[2, 1], advantage=[0.02, -0.03])
MOVES = [[0.1, -0.3], [0.5, 9.0]]


def said(batch=BATCH, moves=MOVES, log_z=((0.4, 7.0), (-0.2, 7.0))):
    pi = moved(batch, moves)
    pi["log_partition"] = torch.tensor(log_z).double().requires_grad_()
    return pi


def test_the_flow_through_each_answer_is_balanced():
    pi, method = said(), flowrl(beta=15.0, clip=0.2)
    miss = [0.4 - 0.1 - 0.3, -0.2 + 0.5 + 0.45]  # 0 and 0.75
    w = [exp(-0.2), 1.2]  # product of ratios; e^0.5 is clipped
    loss = (method.weigh(BATCH) * method.loss(pi, BATCH)).sum()
    assert loss.item() == pytest.approx(w[1] * miss[1] ** 2 / 2)
    by_logp, by_log_z = torch.autograd.grad(loss, [pi.logp, pi["log_partition"]])
    slope = w[1] * miss[1]  # of the mean over two answers
    assert by_logp[BATCH.mask].tolist() == pytest.approx([0.0, 0.0, slope], abs=1e-7)
    assert by_log_z.flatten().tolist() == pytest.approx([0.0, 0.0, slope, 0.0], abs=1e-7)


def test_the_partition_is_read_before_the_first_action():
    mask = torch.tensor([[False, True], [True, False]])
    late = replace(BATCH, mask=mask)
    loss = FlowBalance(beta=0.0, clip=0.2)(said(late, [[9.0, 0.0], [0.0, 9.0]]), late)
    assert loss[:, 0].tolist() == pytest.approx([49.0, 0.04])


def test_it_learns_a_partition_and_reads_the_reference():
    assert flowrl().helpers == (Head("log_partition"),)
    assert flowrl().measured == {"logp@ref"}
    assert flowrl().loss.live == {"log_partition"}


def test_the_defaults_are_those_of_the_recipe():
    assert flowrl().loss == FlowBalance(beta=15.0, clip=0.2)
