from math import exp, log

import pytest
import torch

from grupo.algo.losses import Clip, CorrectedLoss, ImportanceWeight, IntervalMask
from grupo.algo.token_level import row_sum
from grupo.methods.seq_mis import seq_mis
from grupo.testing.batches import make_batch, perturb_logp

# products of ratios: 3 / 2 in the first row, 4 in the second
SAMPLER = [[-1.0 - log(3), -1.0 + log(2)], [-1.0 - log(4), 99.0]]
BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_sequence_above_cap_is_masked():
    method, pi = seq_mis(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx(-1.5 * r / 2)  # it still counts in the mean
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-1.5 * r / 4] * 2 + [0.0])


def test_small_sequence_ratio_is_kept_unchanged():
    batch = make_batch([0], advantage=[1.0], signals={"logp@sampler": [[-1.0 + log(100)]]})
    loss = seq_mis().loss(perturb_logp(batch, [[0.0]]), batch)
    assert loss.item() == pytest.approx(-0.01)


D = [[1.2, -1.5, 0.3], [-1.0, 0.2, 0.0], [0.1, 0.05, 1.8]]  # log pi_old - log pi_sampler


def loss_and_gradient_on_example(method):
    signals = {"logp@sampler": [[-1.0 - d for d in row] for row in D]}
    batch = make_batch([0] * 3, length=[3, 2, 3], advantage=[1.0, -1.0, 0.5], signals=signals)
    pi = perturb_logp(batch, [[0.1, -0.1, -0.5], [0.3, 0.1, 0.0], [-0.4, 0.2, 0.15]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_verl_k1_sum_rejection_uses_inverse_ratio():
    # verl-project/verl @ 1dda039, trainer/ppo/rollout_corr_helper.py,
    # compute_rollout_rejection_mask with rollout_rs="seq_sum_k1": k1 there is
    # log pi_sampler - log pi_old, so that our cap of 2 is its lower bound of 1 / 2; a threshold of
    # "2.0" alone means 0.5_2.0, which drops the second answer, too, whose product is e^-0.8
    verl = {"2.0": [True, False, False], "0.5_1e9": [True, True, False]}
    kept_rows = [
        any(loss_and_gradient_on_example(seq_mis())[1][3 * row : 3 * row + 3]) for row in range(3)
    ]
    assert kept_rows == verl["0.5_1e9"] != verl["2.0"]
    both_sides = loss_and_gradient_on_example(
        seq_mis().replace(
            loss=CorrectedLoss(Clip(0.2, 0.2), ImportanceWeight(IntervalMask(0.5, 2.0), row_sum))
        )
    )[1]
    assert [any(both_sides[3 * row : 3 * row + 3]) for row in range(3)] == verl["2.0"]
