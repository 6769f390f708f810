import pytest
import torch

from grupo.algo.losses import KL, Clip, Entropy, Loss, Reinforce
from grupo.core.batch import Signals
from grupo.core.component import component
from grupo.core.requires import Requires, merged_requires
from grupo.core.schedules import Linear
from grupo.testing.batches import make_batch, perturb_logp


@component
class CouplesRows(Loss):
    requires = Requires(coupled_rows=True)

    def __call__(self, pi, batch):
        return pi.logp - pi.logp.mean()


BATCH = make_batch(group=[0], advantage=[2.0], logp=-1.0)


def test_sums_and_multiples_of_losses_are_losses():
    loss = Reinforce() + 0.5 * (Reinforce() + 3.0 * Reinforce())
    # -2 x -1 = 2, and 2 + 0.5 (2 + 3 x 2) = 6
    assert loss(perturb_logp(BATCH, [[0.0]]), BATCH).tolist() == [[6.0]]


def test_sums_and_multiples_print_as_code():
    loss = Clip(0.2, 0.28) + 0.1 * (Reinforce() + (-0.01) * Entropy())
    code = "Clip(clip_low=0.2, clip_high=0.28) + 0.1 * (Reinforce() + -0.01 * Entropy())"
    assert repr(loss) == code


def test_required_signals_and_coupling_are_derived_from_the_terms():
    loss = Clip() + 0.1 * KL() + 0.1 * Entropy()
    assert merged_requires(loss).all_signals == {"logp@ref", "entropy"}
    assert not merged_requires(loss).coupled_rows
    assert merged_requires(loss + 2.0 * CouplesRows()).coupled_rows


def test_metrics_of_a_sum_are_merged():
    batch = make_batch(group=[0], advantage=[1.0])
    metrics = (Clip() + 0.1 * KL()).metrics(perturb_logp(batch, [[0.5]]), batch)
    assert set(metrics) == {"clip_frac/low", "clip_frac/high", "policy/kl_ref"}


def test_losses_compare_by_value():
    assert Clip() + 0.1 * KL() == Clip() + 0.1 * KL()
    assert Clip() + 0.1 * KL() != Clip() + 0.2 * KL()


def test_unresolved_schedule_as_factor_raises():
    with pytest.raises(TypeError, match="no value before a step begins"):
        (Linear(1.0, 0.0) * Reinforce())(perturb_logp(BATCH, [[0.0]]), BATCH)


def test_abstract_loss_raises():
    with pytest.raises(NotImplementedError):
        Loss()(Signals(logp=torch.zeros(1, 1)), BATCH)


def test_zero_times_a_loss_vanishes_and_requires_no_signals():
    assert Clip() + 0.0 * KL() == 0.0 * KL() + Clip() == Clip()
    zero = 0.0 * Entropy()
    assert (merged_requires(zero).all_signals, zero.zero_if_no_advantage) == (frozenset(), True)
    pi = perturb_logp(BATCH, [[0.5]])
    zero(pi, BATCH).sum().backward()
    assert (zero(pi, BATCH).item(), pi.logp.grad.item()) == (0.0, 0.0)


def test_scheduled_factor_starting_at_0_keeps_its_loss():
    assert merged_requires(Linear(0.0, 1.0) * KL()).all_signals == {"logp@ref"}
