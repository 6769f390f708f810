from collections import Counter
from random import Random

import pytest
import torch

from grupo.algo.replay_rules import (
    FillFromBuffer,
    ReplayCandidates,
    ReplayRequest,
    draw_weights,
    no_replay,
    with_replacement,
    without_replacement,
)
from grupo.testing.batches import make_batch

BUFFER = ReplayCandidates(torch.tensor([1.0, 0.5, 0.0, 0.5]).double(), torch.tensor([0, 1, 2, 3]))


def request(advantage, buffer=BUFFER, off_context=(), step=4, seed=0):
    flags = [[float(i in off_context)] for i in range(len(advantage))]
    signals = {"off_context": flags, "sampled": [[1.0]] * len(advantage)}
    batch = make_batch([0] * len(advantage), advantage=advantage, signals=signals)
    return ReplayRequest(batch, buffer, step, Random(seed))


@pytest.mark.parametrize(
    ("alpha", "probabilities"),
    [
        (1.0, [0.5, 0.25, 0.0, 0.25]),  # |A| / 2
        (0.0, [1 / 3, 1 / 3, 0.0, 1 / 3]),
        (2.0, [2 / 3, 1 / 6, 0.0, 1 / 6]),  # 1, 1/4, 0, 1/4, of sum 3/2
    ],
)
def test_weights_are_powers_of_the_advantage(alpha, probabilities):
    weights = draw_weights(request([0.0]), alpha)
    assert (weights / weights.sum()).tolist() == pytest.approx(probabilities)


@pytest.mark.parametrize("draw", [with_replacement, without_replacement])
def test_a_single_draw_has_the_probability_of_its_weight(draw):
    rng = Random(1)
    weights = draw_weights(request([0.0]))
    counts = Counter(draw(weights, 1, rng)[0] for _ in range(4000))
    assert counts[2] == 0
    assert [counts[i] / 4000 for i in (0, 1, 3)] == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


def test_draws_without_replacement_differ_and_end_with_the_weights():
    assert sorted(without_replacement(draw_weights(request([0.0])), 9, Random(0))) == [0, 1, 3]
    assert without_replacement(torch.zeros(0), 3, Random(0)) == []


def test_draws_with_replacement_from_an_empty_pool_are_none():
    assert with_replacement(torch.zeros(3), 2, Random(0)) == []
    assert with_replacement(torch.zeros(0), 2, Random(0)) == []


def test_drawn_rollouts_take_the_last_places_without_advantage():
    plan = FillFromBuffer()(request([0.0, 1.0, 0.0, 0.0, 0.0]))
    assert sorted(plan.drawn) == [0, 1, 3]  # the three with an advantage, for four places
    assert plan.trained.tolist() == [True, True, False, False, False]
    assert plan.admitted.tolist() == [False, True, False, False, False]


def test_a_share_and_an_age_limit_the_draw():
    assert len(FillFromBuffer(max_share=0.5)(request([0.0] * 4)).drawn) == 2
    assert FillFromBuffer(max_age=1)(request([0.0] * 4)).drawn == (3,)  # of step 3, at step 4


def test_replayed_rollouts_do_not_enter_the_pool():
    plan = FillFromBuffer()(request([1.0, -1.0, 0.5], off_context=(1,)))
    assert plan.admitted.tolist() == [True, False, True]
    assert plan.drawn == ()


def test_rollouts_with_a_forced_part_enter_the_pool_and_demonstrations_do_not():
    signals = {"off_context": [[0.0, 0.0]] * 2, "sampled": [[0.0, 1.0], [0.0, 0.0]]}
    batch = make_batch([0, 0], length=[2, 2], advantage=[1.0, 1.0], signals=signals)
    plan = FillFromBuffer()(ReplayRequest(batch, BUFFER, 4, Random(0)))
    assert plan.admitted.tolist() == [True, False]


def test_no_replay_keeps_every_rollout_and_no_pool():
    plan = no_replay(request([0.0, 1.0]))
    assert (plan.drawn, plan.trained.all(), plan.admitted.any()) == ((), True, False)
