import pytest
import torch

from grupo.core.schedules import resolve_schedules
from grupo.methods.amft import IntegralController, amft
from grupo.testing.batches import make_batch, perturb_logp


def test_low_entropy_raises_the_sft_weight():
    assert IntegralController(0.8, target=0.5, gain=5e-4).next_value([0.3]) == pytest.approx(
        0.8 + 1e-4
    )
    assert IntegralController(0.8, target=0.5, gain=5e-4).next_value([0.7, 0.7]) == pytest.approx(
        0.8 - 2e-4
    )
    assert IntegralController(0.8, target=0.5, gain=5e-4).next_value([]) == 0.8


def test_sft_weight_stays_within_its_bounds():
    assert IntegralController(0.8, target=0.5, gain=10.0).next_value([0.0]) == 0.95
    assert IntegralController(0.8, target=0.5, gain=10.0).next_value([1.0]) == 0.05


def test_both_losses_are_means_over_their_own_tokens():
    method = resolve_schedules(amft(target_entropy=0.5), 0.0, {"policy/entropy": [0.5]})  # mu = 0.8
    batch = make_batch(
        [0, 0, 0], reward=[1.0, 0.0, 9.0], signals={"sampled": [[1.0], [1.0], [0.0]]}
    ).with_advantage(method.advantage)
    # whitened over own rollouts alone: +-1/2 over the standard deviation sqrt(1/2)
    A = 0.5**0.5
    assert batch.advantage.flatten().tolist() == pytest.approx([A, -A, 1.0], rel=1e-6)
    pi = perturb_logp(batch, [[0.0]] * 3)
    pi["entropy"] = torch.full((3, 1), 0.4, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    by_logp, by_entropy = torch.autograd.grad(loss, [pi.logp, pi.entropy])
    assert by_logp.flatten().tolist() == pytest.approx([-0.1 * A, 0.1 * A, -0.8], rel=1e-6)
    # the bonus is of own actions: 0.2 * 0.01 / 2 each
    assert by_entropy.flatten().tolist() == pytest.approx([-0.001, -0.001, 0.0])


def test_defaults_are_the_released_ones():
    assert amft(target_entropy=0.5).controller_metric_names == {"policy/entropy"}
    assert amft(target_entropy=0.5).requires.all_signals == {"sampled", "entropy"}
