import pytest
import torch

from grupo.core.schedules import at
from grupo.methods.amft import Steered, amft
from grupo.testing.batches import batch_of, moved


def test_low_entropy_raises_the_share_of_imitation():
    assert Steered(0.8, target=0.5, by=5e-4).follow([0.3]) == pytest.approx(0.8 + 1e-4)
    assert Steered(0.8, target=0.5, by=5e-4).follow([0.7, 0.7]) == pytest.approx(0.8 - 2e-4)
    assert Steered(0.8, target=0.5, by=5e-4).follow([]) == 0.8


def test_the_share_stays_within_its_bounds():
    assert Steered(0.8, target=0.5, by=10.0).follow([0.0]) == 0.95
    assert Steered(0.8, target=0.5, by=10.0).follow([1.0]) == 0.05


def test_the_two_losses_are_blended_each_a_mean_over_its_own_tokens():
    method = at(amft(entropy=0.5), 0.0, {"entropy": [0.5]})  # mu = 0.8
    batch = batch_of(
        [0, 0, 0], reward=[1.0, 0.0, 9.0], seen={"sampled": [[1.0], [1.0], [0.0]]}
    ).credited(method.credit)
    # whitened over own rollouts alone: +-1/2 over the standard deviation sqrt(1/2)
    A = 0.5**0.5
    assert batch.advantage.flatten().tolist() == pytest.approx([A, -A, 1.0], rel=1e-6)
    pi = moved(batch, [[0.0]] * 3)
    pi["entropy"] = torch.full((3, 1), 0.4, dtype=torch.float64, requires_grad=True)
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    by_logp, by_entropy = torch.autograd.grad(loss, [pi.logp, pi.entropy])
    assert by_logp.flatten().tolist() == pytest.approx([-0.1 * A, 0.1 * A, -0.8], rel=1e-6)
    # the bonus is of own actions: 0.2 * 0.01 / 2 each
    assert by_entropy.flatten().tolist() == pytest.approx([-0.001, -0.001, 0.0])


def test_the_defaults_are_the_released_ones():
    assert amft(entropy=0.5) == amft(entropy=0.5, group=8, share=0.8, by=5e-4, clip=0.2)
    assert amft(entropy=0.5).readings == {"entropy"}
    assert amft(entropy=0.5).needs == {"sampled", "entropy"}
