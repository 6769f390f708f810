"""Corrections on two rows by hand: w = pi_old / pi_sampler is 3 and 1/2 in the first, 4 in the
second."""

from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.algo.aggregation import sequence_mean
from grupo.algo.divergences import k1, k2, k3
from grupo.algo.losses import (
    KL,
    CorrectedLoss,
    ImportanceWeight,
    IntervalMask,
    NormalisedWeight,
    Reinforce,
    RejectionMask,
    TruncatedIS,
)
from grupo.algo.token_level import per_action, row_max, row_mean, row_sum
from grupo.testing.batches import make_batch, perturb_logp

SAMPLER = [[-log(3.0), log(2.0)], [-log(4.0), 99.0]]  # 99: padding, never read
BATCH = make_batch(
    [0, 0], length=[2, 1], logp=0.0, advantage=[1.0, 2.0], signals={"logp@sampler": SAMPLER}
)
PI = perturb_logp(BATCH, [[-1.0, -2.0], [-3.0, 0.0]])


def acted(weight):
    return weight[BATCH.mask].tolist()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (per_action, [3.0, 0.5, 4.0]),
        (row_sum, [1.5, 1.5, 4.0]),
        (row_mean, [1.5**0.5, 1.5**0.5, 4.0]),
        (row_max, [3.0, 3.0, 4.0]),
    ],
)
def test_a_level_says_whose_log_ratio_counts(level, expected):
    assert acted(ImportanceWeight(TruncatedIS(9.0), level)(PI, BATCH)) == pytest.approx(expected)


def test_truncation_keeps_what_an_interval_drops():
    assert acted(ImportanceWeight(TruncatedIS(2.0))(PI, BATCH)) == pytest.approx([2.0, 0.5, 2.0])
    assert acted(ImportanceWeight(IntervalMask(1.0, 3.5))(PI, BATCH)) == pytest.approx(
        [3.0, 0.0, 0.0]
    )


@pytest.mark.parametrize(
    ("estimate", "of_3", "of_half"),
    [
        (k1, -log(3), log(2)),  # log sampler - log old = -d
        (k2, log(3) ** 2 / 2, log(2) ** 2 / 2),
        (k3, 3 - 1 - log(3), 0.5 - 1 + log(2)),  # e^d - 1 - d
    ],
)
def test_rejection_compares_an_estimate_of_the_divergence_with_bounds(estimate, of_3, of_half):
    inside = RejectionMask(estimate, row_mean, max_kl=(of_3 + of_half) / 2 + 1e-9)
    outside = RejectionMask(estimate, row_mean, max_kl=(of_3 + of_half) / 2 - 1e-9)
    assert acted(inside(PI, BATCH))[:2] == [1.0, 1.0]
    assert acted(outside(PI, BATCH))[:2] == [0.0, 0.0]
    assert acted(RejectionMask(estimate, min_kl=of_3 - 1e-9, max_kl=of_3 + 1e-9)(PI, BATCH)) == [
        1,
        0,
        0,
    ]


def test_the_worst_action_of_a_row_can_reject_it():
    assert acted(RejectionMask(k3, row_max, max_kl=0.9)(PI, BATCH)) == [
        0,
        0,
        0,
    ]  # k3 0.9014 of w = 3
    assert acted(RejectionMask(k3, row_max, max_kl=0.91)(PI, BATCH)) == [
        1,
        1,
        0,
    ]  # k3 1.6137 of w = 4


def test_a_normalised_weight_has_mean_1():
    weight = ImportanceWeight(TruncatedIS(9.0))
    assert acted(NormalisedWeight(weight)(PI, BATCH)) == pytest.approx(
        [3 / 2.5, 0.5 / 2.5, 4 / 2.5]
    )
    per_row = NormalisedWeight(weight, sequence_mean)  # mean of 1.75 and 4
    assert acted(per_row(PI, BATCH)) == pytest.approx([3 / 2.875, 0.5 / 2.875, 4 / 2.875])
    nobody = NormalisedWeight(ImportanceWeight(IntervalMask(50.0, 60.0)))
    assert acted(nobody(PI, BATCH)) == [0, 0, 0]


def test_a_corrected_loss_is_the_weight_times_the_loss_and_so_is_its_gradient():
    loss = CorrectedLoss(Reinforce(), ImportanceWeight(TruncatedIS(2.0)))(PI, BATCH)
    # -w A log pi with w 2, 1/2, 2 and log pi -1, -2, -3
    assert acted(loss) == pytest.approx([2.0, 1.0, 12.0])
    (gradient,) = torch.autograd.grad(loss[BATCH.mask].sum(), PI.logp)
    assert acted(gradient) == pytest.approx([-2.0, -0.5, -4.0])
    assert gradient[1, 1] == 0


def test_corrections_compose():
    once = CorrectedLoss(Reinforce(), RejectionMask(k1, max_kl=0.0))
    twice = CorrectedLoss(once, ImportanceWeight(TruncatedIS(2.0)))
    assert acted(twice(PI, BATCH)) == pytest.approx([2.0, 0.0, 12.0])


def test_what_is_left_out_gives_no_gradient_even_if_its_loss_is_infinite():
    far = replace(BATCH, old_logp=BATCH.old_logp - torch.tensor([[800.0, 0.0], [0.0, 0.0]]))
    loss = CorrectedLoss(KL(k3, "sampler"), RejectionMask(k2, max_kl=10.0))
    assert loss(PI, far)[0, 0] == 0


def test_a_correction_declares_what_it_and_its_loss_read():
    loss = CorrectedLoss(KL(), ImportanceWeight(TruncatedIS(2.0)))
    assert loss.required_signals == {"logp@ref", "logp@sampler"}
    assert not loss.couples_rows
    assert CorrectedLoss(KL(), NormalisedWeight(ImportanceWeight(TruncatedIS(2.0)))).couples_rows


def test_how_much_was_left_out_is_reported():
    report = CorrectedLoss(Reinforce(), ImportanceWeight(IntervalMask(1.0, 3.5))).metrics(PI, BATCH)
    assert acted(report["is_correction/rejected_frac"]) == [0, 1, 1]
    assert exp(log(3)) == pytest.approx(acted(report["is_correction/weight_mean"])[0])
