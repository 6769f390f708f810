"""ThinkTuning: the loss of a teacher's tokens, and the answers that hold them."""

import asyncio
from dataclasses import dataclass, replace
from math import log

import pytest
import torch

from grupo.algo.losses import Clip
from grupo.algo.ratios import CappedRatio
from grupo.core.schedules import resolve_schedules
from grupo.methods.thinktuning import TeacherTokens, thinktuning
from grupo.rollouts.samplers import TeacherFeedback
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate
from tests.helpers.scripted_actor import TASK, Once, Script, script

CLIP = Clip(0.2, 0.2, CappedRatio(3.0))


def loss_and_slope(p, advantage, gamma, sampled=0.0, delta=0.0):
    """The loss of one token with probability p, and its derivative by log p."""
    signals = {"sampled": [[sampled]]}
    batch = make_batch([0], advantage=[advantage], logp=log(p), signals=signals)
    pi = perturb_logp(batch, [[delta]])
    loss = TeacherTokens(CLIP, *gamma)(pi, batch)
    (slope,) = torch.autograd.grad(loss.sum(), pi.logp)
    return loss.item(), slope.item()


def test_loss_of_a_teachers_token_by_hand():
    loss, slope = loss_and_slope(0.5, 1.0, (0.001, 0.001))
    assert loss == pytest.approx(-0.5 / 0.501)  # -0.998
    assert slope == pytest.approx(-0.5 / 0.501)
    assert loss_and_slope(0.5, 4.0, (-0.001, 0.001))[0] == pytest.approx(-4 * 0.5 / 0.501)
    assert loss_and_slope(0.5, -4.0, (-0.001, 0.001))[0] == pytest.approx(4 * 0.5 / 0.499)
    assert loss_and_slope(0.5, 9.0, (-0.001, 0.001))[0] == pytest.approx(-9 * 0.5 / 0.501)


def test_the_release_has_one_gamma_for_every_advantage():
    for advantage in (-4.0, 1.0, 4.0):
        loss, _ = loss_and_slope(0.5, advantage, (-0.001, -0.001))
        assert loss == pytest.approx(-advantage * 0.5 / 0.499)


def test_a_denominator_outside_of_0_to_1_is_replaced():
    assert loss_and_slope(0.0005, 1.0, (-0.001, -0.001))[0] == pytest.approx(-1.0001)
    assert loss_and_slope(0.9999, 1.0, (0.001, 0.001))[0] == pytest.approx(-0.9999)


def test_a_token_whose_probability_is_rounded_to_0_has_a_finite_gradient():
    for advantage in (0.0, -1.0, 1.0):
        batch = make_batch([0], advantage=[advantage], logp=-800.0, signals={"sampled": [[0.0]]})
        pi = perturb_logp(batch, [[0.0]])
        loss = TeacherTokens(CLIP, -0.001, 0.001)(pi, batch).sum()
        assert torch.autograd.grad(loss, pi.logp)[0].isfinite().all()


def test_a_rare_token_with_negative_advantage_is_clipped_as_usual():
    assert loss_and_slope(0.005, -1.0, (0.001, 0.001), delta=0.1)[0] == pytest.approx(
        loss_and_slope(0.005, -1.0, (0.001, 0.001), sampled=1.0, delta=0.1)[0]
    )
    assert loss_and_slope(0.02, -1.0, (0.001, 0.001))[0] == pytest.approx(0.02 / 0.021)


def test_the_policys_tokens_have_the_dual_clip():
    # a ratio of e^2 counts as 3 where A < 0
    assert loss_and_slope(0.1, -1.0, (0.0, 0.0), 1.0, delta=2.0)[0] == pytest.approx(3.0)
    assert loss_and_slope(0.1, 1.0, (0.0, 0.0), 1.0, delta=2.0)[0] == pytest.approx(-1.2)


@dataclass(frozen=True)
class Student(Script):
    """A scripted actor whose teacher says "!?"."""

    async def __call__(self, rollout, observation):
        if rollout.role == "teacher":
            self.log.append((observation, "!?"))
            response = self._unsampled_response(observation, "!?")
            return replace(response, sampled=True)
        return await super().__call__(rollout, observation)


def student():
    return Student(lambda context, key: "a" if len(context) < 3 else ".", [])


def test_feedback_becomes_a_part_of_the_answer_that_is_trained_and_not_sampled():
    actor = student()
    sampler = TeacherFeedback(2, share=1.0, request=" {answer} ->")
    group = asyncio.run(sampler(TASK, Once(), actor))
    assert [rollout.text for rollout in group.rollouts] == ["aa!?"] * 2
    assert group.rewards == (4.0, 4.0)  # scored with the feedback
    assert actor.log[-1][0] == "Q aa. ->"
    batch = collate([group], len)
    assert batch.mask.tolist() == [[True] * 4] * 2
    assert batch.signals["sampled"].tolist() == [[1.0, 1.0, 0.0, 0.0]] * 2


def test_a_share_of_the_answers_gets_feedback():
    assert TeacherFeedback().share == 0.1
    sampler = resolve_schedules(thinktuning(group_size=400).sampler, 0.5)
    assert sampler.share == pytest.approx(0.055)
    group = asyncio.run(replace(sampler, share=0.25)(TASK, Once(), student()))
    taught = sum("!?" in rollout.text for rollout in group.rollouts)
    assert taught / 400 == pytest.approx(0.25, abs=0.07)
    assert (
        asyncio.run(TeacherFeedback(3, share=0.0)(TASK, Once(), script(lambda c, key: "."))).rewards
        == (1.0,) * 3
    )
