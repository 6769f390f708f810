"""Skywork R1V2: the draw from the buffer of rollouts with an advantage."""

from random import Random

import pytest
import torch

from grupo.algo.replay_rules import ReplayCandidates, ReplayRequest, draw_weights
from grupo.methods.skywork_r1v2 import skywork_r1v2
from grupo.testing.batches import make_batch

REPLAY = skywork_r1v2().replay


def request(advantage, priority, generated, step):
    signals = {
        name: [[value]] * len(advantage) for name, value in (("off_context", 0.0), ("sampled", 1.0))
    }
    batch = make_batch(range(len(advantage)), advantage=advantage, signals=signals)
    buffer = ReplayCandidates(torch.tensor(priority).double(), torch.tensor(generated))
    return ReplayRequest(batch, buffer, step, Random(0))


def test_rollouts_are_drawn_by_the_size_of_their_advantage():
    """Advantages 1, 1/2 and -1/2 are stored by their size: 2/4, 1/4 and 1/4."""
    weights = draw_weights(request([0.0], [1.0, 0.5, 0.5], [0, 0, 0], 1))
    assert (weights / weights.sum()).tolist() == [0.5, 0.25, 0.25]


def test_groups_with_equal_rewards_never_enter_the_buffer():
    method = skywork_r1v2()
    batch = make_batch([0, 0, 1, 1], reward=[1.0, 1.0, 1.0, 0.0])
    advantage = method.advantage(batch.reward, batch).flatten().tolist()
    plan = REPLAY(request(advantage, [], [], 0))
    assert plan.admitted.tolist() == [False, False, True, True]


def test_at_most_half_of_a_batch_is_drawn_and_nothing_older_than_four_steps():
    plan = REPLAY(request([0.0] * 8, [1.0] * 6, [0, 1, 2, 3, 4, 5], 6))
    assert len(plan.drawn) == 4  # those of steps 2 to 5
    assert set(plan.drawn) == {2, 3, 4, 5}
    assert plan.trained.sum() == 4


def test_sixty_percent_without_an_advantage_leave_a_tenth_of_the_batch_without():
    plan = REPLAY(request([1.0] * 4 + [0.0] * 6, [1.0] * 9, [3] * 9, 4))
    trained = plan.trained.tolist()
    with_advantage = 4 + len(plan.drawn)
    assert with_advantage / (sum(trained) + len(plan.drawn)) == pytest.approx(0.9)
