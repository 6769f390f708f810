import pytest
import torch

from grupo.algo.losses import KL, Clip, Entropy, Loss, Reinforce
from grupo.core.batch import Signals
from grupo.core.component import component
from grupo.core.schedules import Linear
from grupo.testing.batches import make_batch, perturb_logp


@component
class Coupling(Loss):
    @property
    def couples_rows(self):
        return True

    def __call__(self, pi, batch):
        return pi.logp - pi.logp.mean()


BATCH = make_batch(group=[0], advantage=[2.0], logp=-1.0)


def test_sums_and_multiples_are_losses():
    loss = Reinforce() + 0.5 * (Reinforce() + 3.0 * Reinforce())
    # -2 x -1 = 2, and 2 + 0.5 (2 + 3 x 2) = 6
    assert loss(perturb_logp(BATCH, [[0.0]]), BATCH).tolist() == [[6.0]]


def test_sums_and_multiples_print_as_they_are_written():
    loss = Clip(0.2, 0.28) + 0.1 * (Reinforce() + (-0.01) * Entropy())
    assert (
        repr(loss) == "Clip(clip_low=0.2, clip_high=0.28) + 0.1 * (Reinforce() + -0.01 * Entropy())"
    )


def test_needs_and_coupling_are_derived():
    loss = Clip() + 0.1 * KL() + 0.1 * Entropy()
    assert loss.required_signals == {"logp@ref", "entropy"}
    assert not loss.couples_rows
    assert (loss + 2.0 * Coupling()).couples_rows


def test_reports_are_joined():
    batch = make_batch(group=[0], advantage=[1.0])
    report = (Clip() + 0.1 * KL()).metrics(perturb_logp(batch, [[0.5]]), batch)
    assert set(report) == {"clip_frac/low", "clip_frac/high", "policy/kl_ref"}


def test_losses_compare_by_value():
    assert Clip() + 0.1 * KL() == Clip() + 0.1 * KL()
    assert Clip() + 0.1 * KL() != Clip() + 0.2 * KL()


def test_a_factor_that_is_still_a_schedule_is_a_mistake():
    with pytest.raises(AssertionError, match="in place of schedules"):
        (Linear(1.0, 0.0) * Reinforce())(perturb_logp(BATCH, [[0.0]]), BATCH)


def test_a_loss_that_says_nothing_is_not_one():
    with pytest.raises(NotImplementedError):
        Loss()(Signals(logp=torch.zeros(1, 1)), BATCH)


def test_a_multiple_of_0_adds_nothing_and_reads_nothing():
    assert Clip() + 0.0 * KL() == 0.0 * KL() + Clip() == Clip()
    nothing = 0.0 * Entropy()
    assert (nothing.required_signals, nothing.zero_if_no_advantage) == (frozenset(), True)
    pi = perturb_logp(BATCH, [[0.5]])
    nothing(pi, BATCH).sum().backward()
    assert (nothing(pi, BATCH).item(), pi.logp.grad.item()) == (0.0, 0.0)


def test_a_factor_that_may_become_0_keeps_its_loss():
    assert (Linear(0.0, 1.0) * KL()).required_signals == {"logp@ref"}
