import pytest

from grupo.methods.rent import rent
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_the_surer_answer_is_the_better_one():
    seen = {"entropy": [[0.5, 0.1], [1.5, 9.0]]}
    batch = make_batch(group=[0, 0], reward=[0.0, 1.0], length=[2, 1], signals=seen)
    # r = -0.3 and -1.5, whatever the environment paid: mean -0.9, std sqrt(2 * 0.36)
    s = 0.72**0.5 + 1e-6
    assert rent().advantage(batch.reward, batch).tolist() == pytest.approx([0.6 / s, -0.6 / s])


def test_equal_certainty_gives_no_advantage():
    batch = make_batch(group=[0, 0], signals={"entropy": [[0.5], [0.5]]})
    assert rent().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_it_needs_entropy_alone():
    assert rent().required_signals == {"entropy"}
    assert rent().sampler == GroupSampler(5)
