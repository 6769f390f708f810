import pytest

from grupo.methods.rent import rent
from grupo.rollouts.samplers import Independent
from grupo.testing.batches import batch_of


def test_the_surer_answer_is_the_better_one():
    seen = {"entropy": [[0.5, 0.1], [1.5, 9.0]]}
    batch = batch_of(group=[0, 0], reward=[0.0, 1.0], length=[2, 1], seen=seen)
    # r = -0.3 and -1.5, whatever the environment paid: mean -0.9, std sqrt(2 * 0.36)
    s = 0.72**0.5 + 1e-6
    assert rent().credit(batch.reward, batch).tolist() == pytest.approx([0.6 / s, -0.6 / s])


def test_who_is_as_sure_as_the_others_learns_nothing():
    batch = batch_of(group=[0, 0], seen={"entropy": [[0.5], [0.5]]})
    assert rent().credit(batch.reward, batch).tolist() == [0.0, 0.0]


def test_it_needs_entropy_alone():
    assert rent().needs == {"entropy"}
    assert rent().sample == Independent(5)
