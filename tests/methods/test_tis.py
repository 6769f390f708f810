from math import exp, log

import pytest
import torch

from grupo.algo.token_level import per_action
from grupo.methods.tis import tis
from grupo.testing.batches import make_batch, perturb_logp

# The engine was 3 times less sure of the first token than the trainer, 4 times surer of the second.
SAMPLER = [[-1.0 - log(3), -1.0 + log(4)], [-1.0, 99.0]]
BATCH = make_batch([0, 0], length=[2, 1], advantage=[1.0, -1.0], signals={"logp@sampler": SAMPLER})


def test_token_weight_is_truncated_ratio():
    method, pi = tis(), perturb_logp(BATCH, [[0.1, 0.1], [0.1, 0.0]])
    loss = (method.aggregation(BATCH) * method.loss(pi, BATCH)).sum()
    r = exp(0.1)
    assert loss.item() == pytest.approx((-2 * r - r / 4) / 4 + r / 2)
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient[BATCH.mask].tolist() == pytest.approx([-2 * r / 4, -r / 16, r / 2])


def test_equal_engine_logps_change_nothing():
    method, batch = tis(), make_batch([0, 0], advantage=[1.0, -1.0])
    pi = perturb_logp(batch, [[0.5], [0.5]])
    assert method.loss(pi, batch).tolist() == method.loss.loss(pi, batch).tolist()


def test_defaults_match_release():
    weight = tis().loss.weight
    assert (weight.bound.cap, weight.level) == (2.0, per_action)
    assert tis().required_signals == {"logp@sampler"}


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
    # rollout_is_threshold=2.0, and compute_policy_loss_vanilla with
    # "seq-mean-token-mean"; huggingface/trl @ f2cd577, trainer/grpo_trainer.py, its lines for
    # "token_truncate", clip_max 2.0, and loss_type "grpo": the same
    loss, gradient = loss_and_gradient_on_example(tis())
    assert loss == pytest.approx(-0.2915898829928871)
    assert gradient == pytest.approx(
        [
            -0.245593536531,
            -0.022432946369,
            -0.090970083372,
            0.082764216885,
            0.224976466804,
            0.0,
            -0.041156567678,
            0.0,
            -0.129092693206,
        ],
        rel=1e-5,
    )
