"""ReMix: the centred clip, the weight of the reference, the two phases, and what is drawn."""

from collections import Counter
from math import exp, log
from random import Random

import pytest
import torch

from grupo.algo.losses import ClipWithin
from grupo.algo.minibatches import SingleUpdate
from grupo.algo.replay_rules import ReplayCandidates, ReplayRequest
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Task
from grupo.methods.remix import (
    CentredOnCurrent,
    ConvexKL,
    MixedReplay,
    Passes,
    ReferenceWeight,
    remix,
)
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.testing.batches import make_batch, perturb_logp
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner


def in_step(step: int):
    """The method in a step, from 1."""
    return resolve_schedules(remix(), 0.0, {"tokens/generated": [1.0] * (step - 1)})


def old_rollout(advantage: float):
    """A rollout with pi / pi_old = 1.5 and pi_k / pi_old = 1.2."""
    signals = {"logp@current": [[-1 + log(1.2)]]}
    batch = make_batch([0], advantage=[advantage], logp=-1.0, signals=signals)
    return perturb_logp(batch, [[log(1.5)]]), batch


@pytest.mark.parametrize(
    ("advantage", "loss"),
    [
        (1.0, -1.4),  # min(1.5, clip(1.5, 1.2 - 0.2, 1.2 + 0.2))
        (-1.0, 1.5),  # -min(-1.5, -1.4): no bound where the ratio rises against the advantage
    ],
)
def test_the_clip_of_an_old_rollout_is_centred_on_the_current_policy(advantage, loss):
    pi, batch = old_rollout(advantage)
    assert ClipWithin(CentredOnCurrent(0.2))(pi, batch).item() == pytest.approx(loss)


def test_a_ratio_beyond_the_centred_clip_has_no_gradient():
    pi, batch = old_rollout(1.0)
    (slope,) = torch.autograd.grad(ClipWithin(CentredOnCurrent(0.2))(pi, batch).sum(), pi.logp)
    assert slope.item() == 0.0
    (slope,) = torch.autograd.grad(ClipWithin(CentredOnCurrent(0.4))(pi, batch).sum(), pi.logp)
    assert slope.item() == pytest.approx(-1.5)  # 1.5 is below 1.2 + 0.4


def test_the_divergences_from_both_policies_are_mixed():
    signals = {"logp@ref": [[-1.5]], "logp@current": [[-1.1]]}
    batch = make_batch([0], logp=-1.0, signals=signals)
    loss = ConvexKL(0.75)(perturb_logp(batch, [[0.0]]), batch).item()
    far, near = exp(-0.5) + 0.5 - 1, exp(-0.1) + 0.1 - 1
    assert loss == pytest.approx(0.75 * far + 0.25 * near)


@pytest.mark.parametrize(
    ("step", "weight"), [(1, 1), (50, 1), (51, 0.9), (55, 0.9), (61, 0.8), (100, 0.5), (300, 0.5)]
)
def test_the_weight_of_the_reference_falls_by_a_tenth_every_10_steps(step, weight):
    assert ReferenceWeight().next_value([0.0] * (step - 1)) == pytest.approx(weight)


def test_shares_and_passes_change_after_the_last_mixed_step():
    mixed, alone = in_step(50), in_step(51)
    assert (mixed.replay.old_share, alone.replay.old_share) == (0.4, 0.0)
    assert (mixed.curriculum.share, alone.curriculum.share) == (0.6, 1.0)
    assert (mixed.updates, alone.updates) == (Passes(2), Passes(1))
    batch = make_batch([0, 0, 1])
    assert len(list(mixed.updates(batch, Random(0)))) == 2
    (once,) = alone.updates(batch, Random(0))
    (single,) = SingleUpdate()(batch, Random(0))
    assert torch.equal(once.rollout, single.rollout)


def test_the_reference_becomes_the_policy_once():
    assert [step for step in range(1, 201) if remix().reference.is_due(step)] == [50]


def request(num_fresh: int, pool_steps: list[int], step: int, seed: int = 0) -> ReplayRequest:
    signals = {"off_context": [[0.0]] * num_fresh, "sampled": [[1.0]] * num_fresh}
    batch = make_batch([0] * num_fresh, signals=signals)
    numbers = ReplayCandidates(torch.zeros(len(pool_steps)), torch.tensor(pool_steps))
    return ReplayRequest(batch, numbers, step, Random(seed))


def test_two_fifths_of_the_batch_are_of_the_last_two_steps():
    plan = MixedReplay(0.4, 2, 64)(request(6, [1] * 9 + [2] * 5 + [3] * 5, step=4))
    assert len(plan.drawn) == 4  # of 4 + 6 rollouts, also such without an advantage
    assert set(plan.drawn) <= set(range(9, 19))
    assert plan.trained.all()
    assert plan.admitted.all()


def test_rollouts_are_drawn_alike():
    rule = MixedReplay(0.25, 2, 64)  # 1 beside 3
    drawn = Counter(rule(request(3, [2, 3, 3, 3], 4, seed)).drawn[0] for seed in range(800))
    assert [drawn[i] / 800 for i in range(4)] == pytest.approx([0.25] * 4, abs=0.05)


def test_nothing_is_drawn_from_an_empty_pool_or_after_the_first_phase():
    assert MixedReplay(0.4, 2, 64)(request(6, [], 0)).drawn == ()
    assert MixedReplay(0.0, 2, 64)(request(6, [3] * 9, 4)).drawn == ()


def test_a_mixed_step_samples_three_fifths_of_the_tasks():
    tasks = [Task(str(i), "") for i in range(20)]
    asked = CurriculumRequest(tasks, History(), num_tasks=10, seed=0)
    assert len(in_step(1).curriculum(asked)) == 6
    assert len(in_step(51).curriculum(asked)) == 10


@pytest.mark.slow
def test_a_run_mixes_until_the_reference_becomes_the_policy():
    learner = Learner(echo_recipe(remix(group_size=4, reincarnation_step=3), max_steps=5))
    results = [learner.step() for _ in range(5)]
    new, old = zip(*(_new_and_old(result) for result in results), strict=True)
    full = new[-1]
    assert new == (round(0.6 * full / 4) * 4,) * 3 + (full,) * 2
    assert old == (0, *(round(n * 2 / 3) for n in new[1:3]), 0, 0)  # 40 % of the batch
    kl = [result.metrics["policy/kl_ref"] for result in results]
    assert kl[3] < 1e-6 < kl[2]  # before the first update of step 4 the policy is the reference


def _new_and_old(result) -> tuple[int, int]:
    """Numbers of new rollouts and of drawn ones in the batch of a step."""
    drawn = int(result.metrics["replay/drawn"])
    return len(result.batch.reward) - drawn, drawn
