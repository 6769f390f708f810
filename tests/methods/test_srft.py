from math import exp

import pytest
import torch

from grupo.methods.srft import srft
from grupo.testing.batches import make_batch, perturb_logp

H = (0.5, 1.0, 0.2)  # mean entropies of the rows


def batch_losses_and_gradient(right):
    method = srft()
    batch = make_batch(
        [0, 0, 0],
        reward=right,
        length=[2, 2, 2],
        reward_terms={"correct": right},
        signals={"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]},
    ).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0], [0.0, 0.0], [-1.0, -2.0]])
    rows = [[h - 0.1, h + 0.1] for h in H]
    pi["entropy"] = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(
        loss, [pi.logp, pi.entropy], allow_unused=True, materialize_grads=True
    )
    return batch, loss.item(), *slopes


def test_own_rollouts_use_sign_and_demonstration_joins_baseline():
    batch, _, _, _ = batch_losses_and_gradient([1.0, 0.0, 1.0])
    A = (1 / 3) / ((1 / 3) ** 0.5 + 1e-6)  # of 1, 0 and 1: mean 2/3, variance (1 + 4 + 1) / 9 / 2
    assert batch.advantage[:, 0].tolist() == pytest.approx([1.0, -1.0, A])


def test_entropy_weights_are_detached():
    batch, loss, by_logp, by_entropy = batch_losses_and_gradient([1.0, 0.0, 1.0])
    A = batch.advantage[2, 0].item()
    own = [-0.1 * exp(0.5) / 4] * 2 + [1 / 4] * 2  # a mean over four tokens
    w = 0.5 * exp(-0.2)
    p = [exp(-2), exp(-3)]  # old log-probabilities are -1
    demo = [(-w - A * x) / 2 for x in p]
    assert by_logp.flatten().tolist() == pytest.approx(own + demo)
    assert by_entropy.abs().max() == 0
    value = 0.1 * exp(0.5) / 2 - 1 / 2 + (w * 5 - A * sum(p)) / 2
    assert loss == pytest.approx(value)


def test_demonstration_is_imitated_when_all_rollouts_are_correct():
    batch, _, by_logp, _ = batch_losses_and_gradient([1.0, 1.0, 1.0])
    assert batch.advantage[2].tolist() == [0.0, 0.0]
    assert by_logp[2].tolist() == pytest.approx([-0.5 * exp(-0.2) / 2] * 2)


def test_default_hyperparameters():
    assert srft().requires.all_signals == {"sampled", "entropy"}
    assert srft().requires.recomputed_signals == {"entropy"}
