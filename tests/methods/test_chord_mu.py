import pytest
import torch

from grupo.core.schedules import resolve_schedules
from grupo.methods.chord_mu import CosineDecay, chord_mu
from grupo.testing.batches import make_batch, perturb_logp


def test_sft_weight_decays_along_half_a_cosine():
    assert CosineDecay(0.9, 0.05, 1.0).value(0.0) == pytest.approx(0.9)
    assert CosineDecay(0.9, 0.05, 1.0).value(0.5) == pytest.approx(0.475)
    assert CosineDecay(0.9, 0.05, 0.5).value(0.25) == pytest.approx(0.475)
    assert CosineDecay(0.9, 0.05, 0.5).value(0.8) == pytest.approx(0.05)


def test_each_source_is_averaged_over_its_own_tokens():
    method = resolve_schedules(chord_mu(), 0.5)  # mu = 0.475
    sampled = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}
    batch = make_batch([0, 0, 0], reward=[1.0, 0.0, 1.0], length=[1, 1, 2], signals=sampled)
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0]] * 3)
    gradient = torch.autograd.grad(
        (method.aggregation(batch) * method.loss(pi, batch)).sum(), pi.logp
    )[0]
    A = 0.5 / (0.5**0.5 + 1e-6)  # of own rollouts alone
    assert gradient[:2, 0].tolist() == pytest.approx([-0.525 * A / 2, 0.525 * A / 2])
    assert gradient[2].tolist() == pytest.approx([-0.475 / 2, -0.475 / 2])


def test_without_demonstrations_it_is_scaled_grpo():
    method = resolve_schedules(chord_mu(), 0.0)
    batch = make_batch([0, 0], reward=[1.0, 0.0], signals={"sampled": [[1.0], [1.0]]})
    batch = batch.with_advantage(method.advantage)
    loss = (
        method.aggregation(batch) * method.loss(perturb_logp(batch, [[0.0], [0.0]]), batch)
    ).sum()
    assert loss.item() == pytest.approx(0.0)


def test_defaults():
    assert chord_mu().requires.all_signals == {"sampled"}
