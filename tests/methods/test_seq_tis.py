from math import exp, log

import pytest
import torch

from grupo.methods.seq_tis import seq_tis
from grupo.testing.batches import make_batch, perturb_logp

# products of ratios: 3 / 2 in the first row, 4 in the second
SAMPLER = [[-1.0 - log(3), -1.0 + log(2)], [-1.0 - log(4), 99.0]]
BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_sequence_weight_is_truncated_product_of_ratios():
    method, pi = seq_tis(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx(-1.5 * r / 2 + 2 * r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-1.5 * r / 4] * 2 + [r])


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
    # compute_rollout_correction_weights with rollout_is="sequence",
    # rollout_is_threshold=2.0, and compute_policy_loss_vanilla with
    # "seq-mean-token-mean"; huggingface/trl @ f2cd577, trainer/grpo_trainer.py, its lines for
    # "sequence_truncate", clip_max 2.0, and loss_type "grpo": the same
    loss, gradient = loss_and_gradient_on_example(seq_tis())
    assert loss == pytest.approx(-0.44377992541961014)
    assert gradient == pytest.approx(
        [
            -0.122796768266,
            -0.100537490558,
            -0.067392295299,
            0.10108844278,
            0.082764216885,
            0.0,
            -0.074480004867,
            0.0,
            -0.129092693206,
        ],
        rel=1e-5,
    )
