import pytest

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import TaskHistory
from grupo.methods.rae import SubtractMovingMean, rae
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_first_return_updates_baseline_from_zero():
    batch = make_batch(group=[0], reward=[1.0])
    assert rae().advantage(batch.reward, batch).tolist() == pytest.approx([1 - 0.05])


def test_baseline_averages_earlier_returns_of_task():
    history = [TaskHistory((3, 7), ((1.0,), (-1.0,)))]
    batch = make_batch(group=[0], reward=[1.0], history=history)
    b = 0.0
    for r in (1.0, -1.0, 1.0):
        b = 0.95 * b + 0.05 * r
    assert rae().advantage(batch.reward, batch).tolist() == pytest.approx([1 - b])


def test_each_role_has_its_own_baseline():
    # a game is a task for each of its roles; the first mover has always won
    history = [TaskHistory((0, 1), ((1.0,), (1.0,))), TaskHistory((0, 1), ((-1.0,), (-1.0,)))]
    batch = make_batch(group=[0, 1], reward=[1.0, -1.0], history=history)
    first, second = rae(decay=0.5).advantage(batch.reward, batch).tolist()
    assert (first, second) == (1 - 0.875, -1 + 0.875)  # b: 1/2, 3/4, 7/8


def test_group_updates_baseline_by_mean_return():
    batch = make_batch(
        group=[0, 0], reward=[1.0, 0.0], history=[TaskHistory((0,), ((0.5, 0.25, 0.75),))]
    )
    b = (1 - 0.8**3) * 0.5
    b = 0.8**2 * b + (1 - 0.8**2) * 0.5
    assert SubtractMovingMean(0.8)(batch.reward, batch).tolist() == pytest.approx([1 - b, -b])


def test_unscored_group_leaves_baseline_unchanged():
    history = [TaskHistory((0, 1), ((), (1.0,)))]
    batch = make_batch(group=[0], reward=[1.0], history=history)
    assert SubtractMovingMean(0.5)(batch.reward, batch).tolist() == [1 - 0.75]


def test_defaults_match_reference_implementation():
    assert (rae().sampler, rae().loss) == (GroupSampler(1), Reinforce())
    assert rae().aggregation is token_sum
