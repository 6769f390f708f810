import pytest

from grupo.methods.rent import rent
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_lower_entropy_has_higher_advantage():
    signals = {"entropy": [[0.5, 0.1], [1.5, 9.0]]}
    batch = make_batch(group=[0, 0], reward=[0.0, 1.0], length=[2, 1], signals=signals)
    # r = -0.3 and -1.5, independent of the environment reward: mean -0.9, std sqrt(2 * 0.36)
    s = 0.72**0.5 + 1e-6
    assert rent().advantage(batch.reward, batch).tolist() == pytest.approx([0.6 / s, -0.6 / s])


def test_advantage_is_zero_when_entropies_are_equal():
    batch = make_batch(group=[0, 0], signals={"entropy": [[0.5], [0.5]]})
    assert rent().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_requires_entropy_signal_only():
    assert rent().requires.all_signals == {"entropy"}
    assert rent().sampler == GroupSampler(5)
