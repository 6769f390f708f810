import pytest

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core.batch import TaskHistory
from grupo.methods.rae import SubtractMovingMean, rae
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_the_first_return_moves_the_baseline_from_0():
    batch = make_batch(group=[0], reward=[1.0])
    assert rae().advantage(batch.reward, batch).tolist() == pytest.approx([1 - 0.05])


def test_the_baseline_remembers_the_tasks_earlier_returns():
    past = [TaskHistory((3, 7), ((1.0,), (-1.0,)))]
    batch = make_batch(group=[0], reward=[1.0], history=past)
    b = 0.0
    for r in (1.0, -1.0, 1.0):
        b = 0.95 * b + 0.05 * r
    assert rae().advantage(batch.reward, batch).tolist() == pytest.approx([1 - b])


def test_each_role_has_a_baseline_of_its_own():
    # a game is a task for each of its roles; the first mover has always won
    past = [TaskHistory((0, 1), ((1.0,), (1.0,))), TaskHistory((0, 1), ((-1.0,), (-1.0,)))]
    batch = make_batch(group=[0, 1], reward=[1.0, -1.0], history=past)
    first, second = rae(decay=0.5).advantage(batch.reward, batch).tolist()
    assert (first, second) == (1 - 0.875, -1 + 0.875)  # b: 1/2, 3/4, 7/8


def test_rollouts_of_one_group_move_it_by_their_mean_each():
    batch = make_batch(
        group=[0, 0], reward=[1.0, 0.0], history=[TaskHistory((0,), ((0.5, 0.25, 0.75),))]
    )
    b = (1 - 0.8**3) * 0.5
    b = 0.8**2 * b + (1 - 0.8**2) * 0.5
    assert SubtractMovingMean(0.8)(batch.reward, batch).tolist() == pytest.approx([1 - b, -b])


def test_a_group_that_could_not_be_judged_moves_nothing():
    past = [TaskHistory((0, 1), ((), (1.0,)))]
    batch = make_batch(group=[0], reward=[1.0], history=past)
    assert SubtractMovingMean(0.5)(batch.reward, batch).tolist() == [1 - 0.75]


def test_matches_the_authors_code():
    # spiral-rl/spiral @ a02d0ed, train_spiral.py, the lines of use_role_baseline with EMA of
    # spiral/utils.py; four games of two roles in a row; inputs as below. There b is what it was
    # before the game, so that A is ours over the decay
    games = [(1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (0.5, -0.5)]
    expected = [(1.0, -1.0), (0.95, -0.95), (-1.0975, 1.0975), (0.457375, -0.457375)]
    for t, game in enumerate(games):
        past = [
            TaskHistory(tuple(range(t)), tuple((before[role],) for before in games[:t]))
            for role in range(2)
        ]
        batch = make_batch(group=[0, 1], reward=game, history=past)
        A = rae().advantage(batch.reward, batch) / 0.95
        assert A.tolist() == pytest.approx(expected[t], rel=1e-5)


def test_the_defaults_are_the_authors():
    assert (rae().sampler, rae().loss) == (GroupSampler(1), Reinforce())
    assert rae().aggregation is token_sum
