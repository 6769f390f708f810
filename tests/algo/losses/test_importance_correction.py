"""Corrections of two rows, computed by hand: w = pi_old / pi_sampler is 3 and 1/2, then 4."""

from dataclasses import replace
from math import exp, log

import pytest
import torch

from grupo.algo.aggregation import sequence_mean
from grupo.algo.divergences import k1, k2, k3
from grupo.algo.losses import (
    KL,
    BoundedIS,
    CorrectedLoss,
    ImportanceWeight,
    IntervalMask,
    NormalisedWeight,
    Reinforce,
    RejectionMask,
    TruncatedIS,
    current_policy,
)
from grupo.algo.token_level import per_action, row_max, row_mean, row_sum
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.errors import ConfigError

SAMPLER = [[-log(3.0), log(2.0)], [-log(4.0), 99.0]]  # 99: padding
BATCH = make_batch(
    [0, 0], length=[2, 1], logp=0.0, advantage=[1.0, 2.0], signals={"logp@sampler": SAMPLER}
)
PI = perturb_logp(BATCH, [[-1.0, -2.0], [-3.0, 0.0]])


def unmasked(x):
    return x[BATCH.mask].tolist()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (per_action, [3.0, 0.5, 4.0]),
        (row_sum, [1.5, 1.5, 4.0]),
        (row_mean, [1.5**0.5, 1.5**0.5, 4.0]),
        (row_max, [3.0, 3.0, 4.0]),
    ],
)
def test_level_chooses_the_span_of_the_log_ratio(level, expected):
    assert unmasked(ImportanceWeight(TruncatedIS(9.0), level)(PI, BATCH)) == pytest.approx(expected)


def test_truncation_keeps_tokens_that_an_interval_masks():
    assert unmasked(ImportanceWeight(TruncatedIS(2.0))(PI, BATCH)) == pytest.approx([2.0, 0.5, 2.0])
    assert unmasked(ImportanceWeight(IntervalMask(1.0, 3.5))(PI, BATCH)) == pytest.approx(
        [3.0, 0.0, 0.0]
    )


@pytest.mark.parametrize(
    ("estimator", "kl_of_3", "kl_of_half"),
    [
        (k1, -log(3), log(2)),  # log sampler - log old = -d
        (k2, log(3) ** 2 / 2, log(2) ** 2 / 2),
        (k3, 3 - 1 - log(3), 0.5 - 1 + log(2)),  # e^d - 1 - d
    ],
)
def test_rejection_keeps_tokens_within_bounds_of_the_estimate(estimator, kl_of_3, kl_of_half):
    row_kl = (kl_of_3 + kl_of_half) / 2
    inside = RejectionMask(estimator, row_mean, max_kl=row_kl + 1e-9)
    outside = RejectionMask(estimator, row_mean, max_kl=row_kl - 1e-9)
    assert unmasked(inside(PI, BATCH))[:2] == [1.0, 1.0]
    assert unmasked(outside(PI, BATCH))[:2] == [0.0, 0.0]
    interval = RejectionMask(estimator, min_kl=kl_of_3 - 1e-9, max_kl=kl_of_3 + 1e-9)
    assert unmasked(interval(PI, BATCH)) == [1, 0, 0]


def test_worst_token_of_a_row_rejects_the_row():
    # k3 is 0.9014 for w = 3 and 1.6137 for w = 4
    assert unmasked(RejectionMask(k3, row_max, max_kl=0.9)(PI, BATCH)) == [0, 0, 0]
    assert unmasked(RejectionMask(k3, row_max, max_kl=0.91)(PI, BATCH)) == [1, 1, 0]


def test_normalised_weight_has_mean_1():
    weight = ImportanceWeight(TruncatedIS(9.0))
    assert unmasked(NormalisedWeight(weight)(PI, BATCH)) == pytest.approx(
        [3 / 2.5, 0.5 / 2.5, 4 / 2.5]
    )
    per_row = NormalisedWeight(weight, sequence_mean)  # mean of 1.75 and 4
    assert unmasked(per_row(PI, BATCH)) == pytest.approx([3 / 2.875, 0.5 / 2.875, 4 / 2.875])
    all_rejected = NormalisedWeight(ImportanceWeight(IntervalMask(50.0, 60.0)))
    assert unmasked(all_rejected(PI, BATCH)) == [0, 0, 0]


def test_corrected_loss_scales_value_and_gradient_by_the_weight():
    loss = CorrectedLoss(Reinforce(), ImportanceWeight(TruncatedIS(2.0)))(PI, BATCH)
    # -w A log pi with w 2, 1/2, 2 and log pi -1, -2, -3
    assert unmasked(loss) == pytest.approx([2.0, 1.0, 12.0])
    (gradient,) = torch.autograd.grad(loss[BATCH.mask].sum(), PI.logp)
    assert unmasked(gradient) == pytest.approx([-2.0, -0.5, -4.0])
    assert gradient[1, 1] == 0


def test_corrections_nest():
    once = CorrectedLoss(Reinforce(), RejectionMask(k1, max_kl=0.0))
    twice = CorrectedLoss(once, ImportanceWeight(TruncatedIS(2.0)))
    assert unmasked(twice(PI, BATCH)) == pytest.approx([2.0, 0.0, 12.0])


def test_rejected_token_has_loss_0_even_if_its_loss_is_infinite():
    far = replace(BATCH, old_logp=BATCH.old_logp - torch.tensor([[800.0, 0.0], [0.0, 0.0]]))
    loss = CorrectedLoss(KL(k3, "sampler"), RejectionMask(k2, max_kl=10.0))
    assert loss(PI, far)[0, 0] == 0


def test_corrected_loss_requires_the_signals_of_loss_and_weight():
    loss = CorrectedLoss(KL(), ImportanceWeight(TruncatedIS(2.0)))
    assert merged_requires(loss).all_signals == {"logp@ref", "logp@sampler"}
    assert not merged_requires(loss).coupled_rows
    assert merged_requires(
        CorrectedLoss(KL(), NormalisedWeight(ImportanceWeight(TruncatedIS(2.0))))
    ).coupled_rows


def test_corrected_loss_logs_weight_and_rejected_fraction():
    loss = CorrectedLoss(Reinforce(), ImportanceWeight(IntervalMask(1.0, 3.5)))
    metrics = loss.metrics(PI, BATCH)
    assert unmasked(metrics["is_correction/rejected_frac"]) == [0, 1, 1]
    assert exp(log(3)) == pytest.approx(unmasked(metrics["is_correction/weight_mean"])[0])


def test_weights_are_bounded_from_below_too():
    batch = make_batch([0, 0, 0], logp=-1.0, signals={"logp@sampler": [[0.0], [-1.2], [-9.0]]})
    weight = ImportanceWeight(BoundedIS(0.5, 2.0))(perturb_logp(batch, [[0.0]] * 3), batch)
    assert weight.flatten().tolist() == pytest.approx([0.5, exp(0.2), 2.0])
    with pytest.raises(ConfigError, match="high"):
        BoundedIS(2.0, 0.5)


def test_rejection_follows_the_current_policy_if_told_to():
    batch = make_batch([0, 0], logp=-1.0, signals={"logp@sampler": [[-1.0], [-1.0]]})
    pi = perturb_logp(batch, [[0.0], [-0.6]])  # the second has moved away from the sampler
    before = RejectionMask(k1, max_kl=0.5)(pi, batch)
    now = RejectionMask(k1, max_kl=0.5, policy=current_policy)(pi, batch)
    assert before.flatten().tolist() == [1.0, 1.0]
    assert now.flatten().tolist() == [1.0, 0.0]
    assert not now.requires_grad
