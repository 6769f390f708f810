from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo import divergences, ratios
from grupo.algo.losses import (
    JSD,
    KL,
    AllWrong,
    CorrectedKL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    Only,
    Reinforce,
    ReverseKL,
    StraightThroughKL,
    Watched,
    Wrong,
)
from grupo.algo.losses.masking import falling, rising
from grupo.core.batch import Named, Signals
from grupo.core.controllers import TargetEntropy
from grupo.core.errors import Unmeasured
from grupo.core.schedules import at
from grupo.testing.batches import batch_of, moved

BATCH = batch_of(group=[0, 0])  # old and reference log-probabilities are -1


def slope(loss, batch, moves):
    pi = moved(batch, moves)
    return torch.autograd.grad(loss(pi, batch).sum(), pi.logp)[0].flatten().tolist()


def test_kl_is_k3_against_the_reference():
    # the policy's -0.5 and -1.25: d = -0.5 and 0.25
    loss = KL()(moved(BATCH, [[0.5], [-0.25]]), BATCH).flatten().tolist()
    assert loss == pytest.approx([exp(-0.5) + 0.5 - 1, exp(0.25) - 0.25 - 1])


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (divergences.k1, [1.0, 1.0]),
        (divergences.k2, [0.5, -0.25]),
        (divergences.k3, [1 - exp(-0.5), 1 - exp(0.25)]),
        (divergences.absolute, [1.0, -1.0]),
    ],
)
def test_the_gradient_of_kl_by_each_estimate(estimate, expected):
    assert slope(KL(estimate), BATCH, [[0.5], [-0.25]]) == pytest.approx(expected)


def test_kl_may_use_another_estimate_and_another_policy():
    loss = KL(divergences.k1, other="teacher")
    seen = Named({"logp@teacher": torch.tensor([[-3.0], [-0.5]], dtype=torch.float64)})
    batch = replace(BATCH, seen=seen)
    assert loss.needs == {"logp@teacher"}
    assert loss(moved(BATCH, [[0.0], [0.0]]), batch).tolist() == [[2.0], [-0.5]]
    assert [*loss.report(moved(BATCH, [[0.0], [0.0]]), batch)] == ["kl/teacher"]


def test_kl_without_a_reference_raises_by_its_name():
    with pytest.raises(Unmeasured, match="'logp@ref' was not measured"):
        KL()(moved(BATCH, [[0.0], [0.0]]), replace(BATCH, seen=Named()))


def test_straight_through_kl_has_the_value_of_one_and_the_gradient_of_the_other():
    loss, moves = StraightThroughKL(), [[0.5], [-0.25]]
    value = loss(moved(BATCH, moves), BATCH).flatten().tolist()
    assert value == pytest.approx([exp(-0.5) + 0.5 - 1, exp(0.25) - 0.25 - 1])
    assert slope(loss, BATCH, moves) == pytest.approx([0.5, -0.25])
    assert loss.stops_gradient


def test_the_corrected_kl_multiplies_by_the_ratio_and_differentiates_both():
    batch = batch_of([0, 0], seen={"logp@ref": [[-2.0], [-1.0]]})
    moves = [[0.3], [-0.4]]  # d = log pi - log ref = 1.3 and -0.4
    value = CorrectedKL()(moved(batch, moves), batch).flatten().tolist()
    k3 = [exp(-1.3) + 1.3 - 1, exp(0.4) - 0.4 - 1]
    assert value == pytest.approx([exp(0.3) * k3[0], exp(-0.4) * k3[1]])
    # r (e^-d + d - 1) + r (1 - e^-d) = r d
    assert slope(CorrectedKL(), batch, moves) == pytest.approx([exp(0.3) * 1.3, exp(-0.4) * -0.4])


def test_a_corrected_kl_knows_what_its_ratio_needs():
    loss = CorrectedKL(other="teacher", ratio=ratios.Against("sampler"))
    assert loss.needs == {"logp@teacher", "logp@sampler"}
    assert not loss.stops_gradient
    assert CorrectedKL(ratio=ratios.SequenceToken()).stops_gradient


@pytest.mark.parametrize(
    ("loss", "signal", "metric"),
    [
        (ReverseKL(), "reverse_kl@ref", "kl/ref"),
        (ForwardKL("teacher"), "forward_kl@teacher", "forward_kl/teacher"),
        (JSD("hinted"), "jsd@hinted", "jsd/hinted"),
    ],
)
def test_exact_divergences_are_what_the_policy_says_of_each_state(loss, signal, metric):
    told = torch.tensor([[0.3], [0.7]], dtype=torch.float64, requires_grad=True)
    pi = Signals({"logp": BATCH.old_logp, signal: told})
    said = (0.5 * loss)(pi, BATCH)
    said.sum().backward()
    assert told.grad is not None
    assert said.flatten().tolist() == pytest.approx([0.15, 0.35])
    assert told.grad.flatten().tolist() == [0.5, 0.5]
    assert loss.needs == loss.live == {signal}
    assert loss.report(pi, BATCH)[metric] is told


def test_entropy_is_what_the_policy_says_it_is():
    entropy = torch.tensor([[0.7], [0.1]], dtype=torch.float64, requires_grad=True)
    loss = -0.01 * Entropy()
    said = loss(Signals(logp=BATCH.old_logp, entropy=entropy), BATCH)
    said.sum().backward()
    assert loss.needs == {"entropy"}
    assert said.flatten().tolist() == pytest.approx([-0.007, -0.001])
    assert entropy.grad is not None
    assert entropy.grad.flatten().tolist() == pytest.approx([-0.01, -0.01])


def test_the_entropy_bonus_takes_its_coefficient_from_a_controller():
    bonus = EntropyBonus(TargetEntropy(target=0.2, by=0.005))
    pi = Signals(logp=BATCH.old_logp, entropy=torch.tensor([[0.4], [0.1]], dtype=torch.float64))
    now = at(bonus, 0.0, {"entropy": [0.1, 0.1]})
    assert now(pi, BATCH).flatten().tolist() == pytest.approx([-0.004, -0.001])
    assert now.report(pi, BATCH)["entropy/coefficient"].flatten().tolist() == [0.01, 0.01]


def test_what_is_watched_is_reported_and_has_no_gradient():
    batch = batch_of([0, 0], advantage=[1.0, 1.0])
    loss = Reinforce() + Watched(KL())
    assert slope(loss, batch, [[0.5], [0.5]]) == [-1.0, -1.0]
    assert loss.needs == {"logp@ref"}
    k3 = exp(-0.5) + 0.5 - 1
    reported = loss.report(moved(batch, [[0.5], [0.5]]), batch)["kl/ref"]
    assert reported.flatten().tolist() == pytest.approx([k3, k3])


def test_a_regulariser_may_act_only_where_the_advantage_is_negative_or_positive():
    batch = batch_of([0, 0, 0], advantage=[1.0, -1.0, 0.0])
    moves = [[0.5]] * 3
    assert slope(Only(KL(divergences.k2), falling), batch, moves) == [0.0, 0.5, 0.0]
    assert slope(Only(KL(divergences.k2), rising), batch, moves) == [0.5, 0.0, 0.0]


def test_a_regulariser_may_act_only_on_what_is_wrong_or_on_hopeless_groups():
    batch = batch_of([0, 0, 1, 1], parts={"correct": [1.0, 0.2, 0.5, 0.0]})
    moves = [[0.5]] * 4
    assert slope(Only(KL(divergences.k2), Wrong()), batch, moves) == [0.0, 0.5, 0.5, 0.5]
    assert slope(Only(KL(divergences.k2), AllWrong()), batch, moves) == [0.0, 0.0, 0.5, 0.5]
    assert Wrong("format").reads_parts == AllWrong("format").reads_parts == ("format",)


def test_where_a_loss_acts_does_not_change_what_it_is():
    inner = StraightThroughKL(other="teacher")
    assert Only(inner, falling).needs == inner.needs
    assert Only(ReverseKL(), falling).live == {"reverse_kl@ref"}
    assert Only(inner, falling).stops_gradient
    assert not Only(inner, falling).couples_rows
    pi = moved(BATCH, [[0.5], [0.5]])
    assert [*Only(KL(), falling).report(pi, BATCH)] == ["kl/ref"]


# verl-project/verl @ 1dda039, trainer/ppo/core_algos.py, kl_penalty: value and gradient where the
# policy gives these log-probabilities and the reference -1; "low_var_kl" is k3 held within 10
LOGP = [-0.5, -1.25, -3.0]
VERL = {
    "kl": ([0.5, -0.25, -2.0], [1.0, 1.0, 1.0]),
    "abs": ([0.5, 0.25, 2.0], [1.0, -1.0, -1.0]),
    "mse": ([0.125, 0.03125, 2.0], [0.5, -0.25, -2.0]),
    "low_var_kl": (
        [0.1065306597, 0.0340254167, 4.3890560989],
        [0.39346934, -0.28402542, -6.3890561],
    ),
    "k1+": ([0.5, -0.25, -2.0], [0.5, -0.25, -2.0]),
    "k3+": ([0.1065306597, 0.0340254167, 4.3890560989], [0.5, -0.25, -2.0]),
    "abs+": ([0.5, 0.25, 2.0], [0.5, -0.25, -2.0]),
}


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("kl", KL(divergences.k1)),
        ("abs", KL(divergences.absolute)),
        ("mse", KL(divergences.k2)),
        ("low_var_kl", KL(divergences.k3)),
        ("low_var_kl", KL(divergences.k3_held)),
        ("k1+", StraightThroughKL(divergences.k1)),
        ("k3+", StraightThroughKL()),
        ("abs+", StraightThroughKL(divergences.absolute)),
    ],
)
def test_estimates_give_the_numbers_of_verl(kind, loss):
    batch, (values, slopes) = batch_of(group=[0, 0, 0]), VERL[kind]
    moves = [[logp + 1] for logp in LOGP]
    assert loss(moved(batch, moves), batch).flatten().tolist() == pytest.approx(values)
    assert slope(loss, batch, moves) == pytest.approx(slopes)


def test_far_away_verl_holds_k3_at_10_and_its_gradient_at_0():
    # the same function at log-probabilities of -24 and -1 against -1 and -26: 10 and 10, slopes 0
    batch = batch_of(group=[0, 0], seen={"logp@ref": [[-1.0], [-26.0]]})
    moves = [[-23.0], [0.0]]
    held = KL(divergences.k3_held)
    assert held(moved(batch, moves), batch).flatten().tolist() == [10.0, 10.0]
    assert slope(held, batch, moves) == [0.0, 0.0]
    # the paper's k3 grows: e^23 - 24 on the one side, 25 - 1 with slope 1 on the other
    k3 = KL()(moved(batch, moves), batch).flatten().tolist()
    assert k3 == pytest.approx([exp(23) - 24, exp(-25) + 24])
    assert slope(KL(), batch, moves) == pytest.approx([1 - exp(23), 1 - exp(-25)])
