from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo import divergences, ratios
from grupo.algo.losses import (
    JSD,
    KL,
    AllIncorrectGroups,
    CorrectedKL,
    Entropy,
    EntropyBonus,
    ForwardKL,
    IncorrectRollouts,
    MetricsOnly,
    Reinforce,
    ReverseKL,
    StraightThroughKL,
    WhereLoss,
)
from grupo.algo.losses.masking import negative_advantage, positive_advantage
from grupo.core.batch import SignalDict, Signals
from grupo.core.controllers import TargetEntropy
from grupo.core.requires import merged_requires
from grupo.core.schedules import resolve_schedules
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.errors import MissingSignalError

BATCH = make_batch(group=[0, 0])  # old and reference log-probabilities are -1


def gradient(loss, batch, deltas):
    pi = perturb_logp(batch, deltas)
    return torch.autograd.grad(loss(pi, batch).sum(), pi.logp)[0].flatten().tolist()


def test_kl_is_k3_against_the_reference():
    # the policy's -0.5 and -1.25: d = -0.5 and 0.25
    loss = KL()(perturb_logp(BATCH, [[0.5], [-0.25]]), BATCH).flatten().tolist()
    assert loss == pytest.approx([exp(-0.5) + 0.5 - 1, exp(0.25) - 0.25 - 1])


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (divergences.k1, [1.0, 1.0]),
        (divergences.k2, [0.5, -0.25]),
        (divergences.k3, [1 - exp(-0.5), 1 - exp(0.25)]),
        (divergences.abs_log_ratio, [1.0, -1.0]),
    ],
)
def test_gradient_of_kl_by_each_estimator(estimator, expected):
    assert gradient(KL(estimator), BATCH, [[0.5], [-0.25]]) == pytest.approx(expected)


def test_kl_with_another_estimator_and_another_policy():
    loss = KL(divergences.k1, other_policy="teacher")
    signals = SignalDict({"logp@teacher": torch.tensor([[-3.0], [-0.5]], dtype=torch.float64)})
    batch = replace(BATCH, signals=signals)
    assert merged_requires(loss).all_signals == {"logp@teacher"}
    assert loss(perturb_logp(BATCH, [[0.0], [0.0]]), batch).tolist() == [[2.0], [-0.5]]
    assert [*loss.metrics(perturb_logp(BATCH, [[0.0], [0.0]]), batch)] == ["policy/kl_teacher"]


def test_kl_without_a_reference_raises_with_the_signal_name():
    with pytest.raises(MissingSignalError, match="'logp@ref' was not measured"):
        KL()(perturb_logp(BATCH, [[0.0], [0.0]]), replace(BATCH, signals=SignalDict()))


def test_straight_through_kl_has_the_value_of_k3_and_the_gradient_of_k2():
    loss, deltas = StraightThroughKL(), [[0.5], [-0.25]]
    value = loss(perturb_logp(BATCH, deltas), BATCH).flatten().tolist()
    assert value == pytest.approx([exp(-0.5) + 0.5 - 1, exp(0.25) - 0.25 - 1])
    assert gradient(loss, BATCH, deltas) == pytest.approx([0.5, -0.25])
    assert merged_requires(loss).surrogate_gradient


def test_corrected_kl_multiplies_by_the_ratio_and_differentiates_both():
    batch = make_batch([0, 0], signals={"logp@ref": [[-2.0], [-1.0]]})
    deltas = [[0.3], [-0.4]]  # d = log pi - log ref = 1.3 and -0.4
    value = CorrectedKL()(perturb_logp(batch, deltas), batch).flatten().tolist()
    k3 = [exp(-1.3) + 1.3 - 1, exp(0.4) - 0.4 - 1]
    assert value == pytest.approx([exp(0.3) * k3[0], exp(-0.4) * k3[1]])
    # r (e^-d + d - 1) + r (1 - e^-d) = r d
    assert gradient(CorrectedKL(), batch, deltas) == pytest.approx(
        [exp(0.3) * 1.3, exp(-0.4) * -0.4]
    )


def test_corrected_kl_requires_the_signals_of_its_ratio():
    loss = CorrectedKL(other_policy="teacher", ratio=ratios.RatioTo("sampler"))
    assert merged_requires(loss).all_signals == {"logp@teacher", "logp@sampler"}
    assert not merged_requires(loss).surrogate_gradient
    assert merged_requires(CorrectedKL(ratio=ratios.SequenceTokenRatio())).surrogate_gradient


@pytest.mark.parametrize(
    ("loss", "signal", "metric"),
    [
        (ReverseKL(), "reverse_kl@ref", "policy/kl_ref"),
        (ForwardKL("teacher"), "forward_kl@teacher", "policy/forward_kl_teacher"),
        (JSD("hinted"), "jsd@hinted", "policy/jsd_hinted"),
    ],
)
def test_exact_divergences_return_their_signal_with_gradient(loss, signal, metric):
    divergence = torch.tensor([[0.3], [0.7]], dtype=torch.float64, requires_grad=True)
    pi = Signals({"logp": BATCH.old_logp, signal: divergence})
    value = (0.5 * loss)(pi, BATCH)
    value.sum().backward()
    assert divergence.grad is not None
    assert value.flatten().tolist() == pytest.approx([0.15, 0.35])
    assert divergence.grad.flatten().tolist() == [0.5, 0.5]
    assert merged_requires(loss).all_signals == merged_requires(loss).recomputed_signals == {signal}
    assert loss.metrics(pi, BATCH)[metric] is divergence


def test_entropy_loss_returns_the_entropy_with_gradient():
    entropy = torch.tensor([[0.7], [0.1]], dtype=torch.float64, requires_grad=True)
    loss = -0.01 * Entropy()
    value = loss(Signals(logp=BATCH.old_logp, entropy=entropy), BATCH)
    value.sum().backward()
    assert merged_requires(loss).all_signals == {"entropy"}
    assert value.flatten().tolist() == pytest.approx([-0.007, -0.001])
    assert entropy.grad is not None
    assert entropy.grad.flatten().tolist() == pytest.approx([-0.01, -0.01])


def test_entropy_bonus_takes_its_coefficient_from_a_controller():
    bonus = EntropyBonus(TargetEntropy(target=0.2, step_size=0.005))
    pi = Signals(logp=BATCH.old_logp, entropy=torch.tensor([[0.4], [0.1]], dtype=torch.float64))
    resolved = resolve_schedules(bonus, 0.0, {"policy/entropy": [0.1, 0.1]})
    assert resolved(pi, BATCH).flatten().tolist() == pytest.approx([-0.004, -0.001])
    assert resolved.metrics(pi, BATCH)["entropy_coef"].flatten().tolist() == [0.01, 0.01]


def test_metrics_only_logs_metrics_without_gradient():
    batch = make_batch([0, 0], advantage=[1.0, 1.0])
    loss = Reinforce() + MetricsOnly(KL())
    assert gradient(loss, batch, [[0.5], [0.5]]) == [-1.0, -1.0]
    assert merged_requires(loss).all_signals == {"logp@ref"}
    k3 = exp(-0.5) + 0.5 - 1
    logged = loss.metrics(perturb_logp(batch, [[0.5], [0.5]]), batch)["policy/kl_ref"]
    assert logged.flatten().tolist() == pytest.approx([k3, k3])


def test_where_loss_on_negative_or_positive_advantages():
    batch = make_batch([0, 0, 0], advantage=[1.0, -1.0, 0.0])
    deltas = [[0.5]] * 3
    assert gradient(WhereLoss(KL(divergences.k2), negative_advantage), batch, deltas) == [
        0.0,
        0.5,
        0.0,
    ]
    assert gradient(WhereLoss(KL(divergences.k2), positive_advantage), batch, deltas) == [
        0.5,
        0.0,
        0.0,
    ]


def test_where_loss_on_incorrect_rollouts_or_all_incorrect_groups():
    batch = make_batch([0, 0, 1, 1], reward_terms={"correct": [1.0, 0.2, 0.5, 0.0]})
    deltas = [[0.5]] * 4
    rollouts = WhereLoss(KL(divergences.k2), IncorrectRollouts())
    assert gradient(rollouts, batch, deltas) == [0.0, 0.5, 0.5, 0.5]
    groups = WhereLoss(KL(divergences.k2), AllIncorrectGroups())
    assert gradient(groups, batch, deltas) == [0.0, 0.0, 0.5, 0.5]
    assert merged_requires(IncorrectRollouts("format")).reward_terms == {"format"}
    assert merged_requires(AllIncorrectGroups("format")).reward_terms == {"format"}


def test_where_loss_keeps_the_properties_of_its_loss():
    inner = StraightThroughKL(other_policy="teacher")
    assert (
        merged_requires(WhereLoss(inner, negative_advantage)).all_signals
        == merged_requires(inner).all_signals
    )
    assert merged_requires(WhereLoss(ReverseKL(), negative_advantage)).recomputed_signals == {
        "reverse_kl@ref"
    }
    assert merged_requires(WhereLoss(inner, negative_advantage)).surrogate_gradient
    assert not merged_requires(WhereLoss(inner, negative_advantage)).coupled_rows
    pi = perturb_logp(BATCH, [[0.5], [0.5]])
    assert [*WhereLoss(KL(), negative_advantage).metrics(pi, BATCH)] == ["policy/kl_ref"]


def test_clamped_k3_is_10_with_gradient_0_far_from_the_reference():
    # verl at log-probabilities of -24 and -1 against -1 and -26: 10 and 10, gradients 0
    batch = make_batch(group=[0, 0], signals={"logp@ref": [[-1.0], [-26.0]]})
    deltas = [[-23.0], [0.0]]
    clamped = KL(divergences.k3_clamped)
    assert clamped(perturb_logp(batch, deltas), batch).flatten().tolist() == [10.0, 10.0]
    assert gradient(clamped, batch, deltas) == [0.0, 0.0]
    # the paper's k3 is unbounded: e^23 - 24, and 25 - 1 with gradient 1
    k3 = KL()(perturb_logp(batch, deltas), batch).flatten().tolist()
    assert k3 == pytest.approx([exp(23) - 24, exp(-25) + 24])
    assert gradient(KL(), batch, deltas) == pytest.approx([1 - exp(23), 1 - exp(-25)])
