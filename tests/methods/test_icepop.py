from math import exp, log

import pytest
import torch

from grupo.algo.losses import IntervalMask
from grupo.methods.icepop import icepop
from grupo.testing.batches import make_batch, perturb_logp

K = [[6.0, 4.0], [0.4, 0.6]]  # pi_old / pi_sampler
SAMPLER = [[-1.0 - log(k) for k in row] for row in K]
BATCH = make_batch([0, 0], length=[2, 2], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_tokens_outside_interval_are_masked_on_both_sides():
    method, pi = icepop(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.1]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-4 * r + 0.6 * r) / 4)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([0.0, -4 * r / 4, 0.0, 0.6 * r / 4])


def test_default_interval():
    assert icepop().loss.weight.bound == IntervalMask(0.5, 5.0)


D = [[1.2, -1.5, 0.3], [-1.0, 0.2, 0.0], [0.1, 0.05, 1.8]]  # log pi_old - log pi_sampler


def loss_and_gradient_on_example(method):
    signals = {"logp@sampler": [[-1.0 - d for d in row] for row in D]}
    batch = make_batch([0] * 3, length=[3, 2, 3], advantage=[1.0, -1.0, 0.5], signals=signals)
    pi = perturb_logp(batch, [[0.1, -0.1, -0.5], [0.3, 0.1, 0.0], [-0.4, 0.2, 0.15]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    return loss.item(), gradient.flatten().tolist()


def test_matches_verl_and_trl():
    # verl-project/verl @ 1dda039, trainer/ppo/rollout_corr_helper.py,
    # compute_rollout_correction_weights with rollout_is="token",
    # rollout_is_threshold="0.5_5.0", and compute_policy_loss_vanilla with
    # "seq-mean-token-mean"; huggingface/trl @ f2cd577, trainer/grpo_trainer.py, its lines for
    # "token_mask", clip_min 0.5, clip_max 5.0, and loss_type "grpo": the same
    loss, gradient = loss_and_gradient_on_example(icepop())
    assert loss == pytest.approx(-0.38493455214736727)
    assert gradient == pytest.approx(
        [
            -0.407699628376,
            0.0,
            -0.090970083372,
            0.0,
            0.224976466804,
            0.0,
            -0.041156567678,
            0.0,
            0.0,
        ],
        rel=1e-5,
    )


def test_trl_masks_only_above_without_clip_min():
    # the same lines of trl with clip_max 5.0 alone: e^-1.5 and e^-1 stay
    loss, gradient = loss_and_gradient_on_example(icepop(min_ratio=0.0))
    assert loss == pytest.approx(-0.32460330117586117)
    assert [gradient[1], gradient[3]] == pytest.approx([-0.0224329464, 0.0827642183], rel=1e-5)
