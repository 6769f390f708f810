"""Distillation losses from logits to number: those of TRL's trainers on one batch.

Signals are computed from the logits as in training. TRL's functions ran in its own environment;
`DistillationTrainer` computes in float32.
"""

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
import torch
from torch import Tensor

from grupo.algo.divergences import k2
from grupo.algo.losses import (
    JSD,
    KL,
    Clip,
    CorrectedLoss,
    ForwardKL,
    ReverseKL,
    SelfDistillOnFailure,
    WhereLoss,
    ZeroLoss,
)
from grupo.algo.losses.self_distill import self_distill_mask
from grupo.algo.ratios import CappedRatio
from grupo.core.batch import Batch, SignalDict, Signals
from grupo.inference.sampling_params import Sampling
from grupo.kernels.hidden_states import HiddenStates
from grupo.method import Method
from grupo.methods.gkd import gkd
from grupo.methods.opd import opd
from grupo.models.token_statistics import TokenDistributions, token_signals
from grupo.testing.batches import make_batch

RECORDED = json.loads(Path(__file__).with_name("distillation_losses.json").read_text())
SIGNALS = ("logp", "entropy", "forward_kl@teacher", "reverse_kl@teacher", "jsd@teacher")


def recorded_advantage(x: Tensor, batch: Batch) -> Tensor:
    return torch.tensor(RECORDED["advantage"], dtype=torch.float64)


def token_mean_of(loss) -> Method:
    """The mean over all tokens: `DistillationTrainer`, `GKDTrainer`."""
    return opd().replace(loss=loss)


def row_mean_of(loss) -> Method:
    """The mean over answers, those without a loss included: `SDPOTrainer`."""
    return gkd().replace(loss=loss, advantage=recorded_advantage)


def distilled(loss) -> Method:
    return row_mean_of(WhereLoss(loss, self_distill_mask))


SAMPLED = KL(k2, "teacher")  # its gradient is that of TRL's loss, its value is not
CLIPPED = SelfDistillOnFailure(ZeroLoss(), cap=2.0, teacher="teacher")
METHODS = {
    "distillation_beta_0": token_mean_of(ForwardKL("teacher")),
    "distillation_beta_0.5": token_mean_of(JSD("teacher")),
    "distillation_beta_1": token_mean_of(ReverseKL("teacher")),
    "distillation_beta_0.5_temperature": token_mean_of(JSD("teacher")),
    "distillation_beta_1_temperature": token_mean_of(ReverseKL("teacher")),
    "gkd_beta_0": token_mean_of(ForwardKL("teacher")),
    "gkd_beta_0.5_temperature": token_mean_of(JSD("teacher")),
    "gkd_beta_1_temperature": token_mean_of(ReverseKL("teacher")),
    "sdpo_alpha_0": distilled(ForwardKL("teacher")),
    "sdpo_alpha_0.5": distilled(JSD("teacher")),
    "sdpo_alpha_1": distilled(ReverseKL("teacher")),
    "sdpo_is_clip": row_mean_of(CLIPPED),
    "sdpo_weight": row_mean_of(0.6 * Clip(0.2, 0.28) + 0.4 * CLIPPED),
    "sdpo_sampled_token": distilled(SAMPLED),
    "sdpo_sampled_token_is_clip": distilled(CorrectedLoss(SAMPLED, CappedRatio(2.0))),
    "iw_opd_gamma_0": opd(),
}
GRADIENT_ONLY = {"sdpo_sampled_token", "sdpo_sampled_token_is_clip"}
NEAREST = {
    "distillation_beta_0.1": token_mean_of(JSD("teacher")),
    "gkd_beta_0.9": token_mean_of(JSD("teacher")),
    "sdpo_alpha_0.25": distilled(JSD("teacher")),
    "sdpo_topk_tail": distilled(JSD("teacher")),
    "sdpo_topk": distilled(JSD("teacher")),
    "iw_opd_gamma_1": opd(),
}


def distributions(logits: Tensor, token: Tensor, temperature: float) -> TokenDistributions:
    """Distributions whose head returns the logits."""
    return TokenDistributions(HiddenStates(logits), token, lambda x: x, Sampling(temperature))


def signals_of(logits: Tensor, batch: Batch, temperature: float) -> Signals:
    """Signals of the student's tokens (N, T), and `logp@teacher`."""
    token = torch.tensor(RECORDED["token"])[batch.mask]
    teacher_logits = torch.tensor(RECORDED["teacher_logits"], dtype=torch.float64)[batch.mask]
    teacher = distributions(teacher_logits, token, temperature)
    student = distributions(logits, token, temperature)
    signals = token_signals(student, SIGNALS, {"teacher": teacher})
    signals["logp@teacher"] = token_signals(teacher)["logp"]
    table = torch.zeros(batch.mask.shape, dtype=torch.float64)
    return Signals({name: table.masked_scatter(batch.mask, x) for name, x in signals.items()})


def recorded_batch() -> Batch:
    batch = make_batch(
        group=[0, 0, 0],
        length=RECORDED["length"],
        reward_terms={"correct": RECORDED["correct"]},
    )
    return replace(batch, old_logp=torch.tensor(RECORDED["old_logp"], dtype=torch.float64))


def loss_and_gradient(method: Method, temperature: float) -> tuple[float, list[float]]:
    """The loss, and its gradient with respect to the student's logits of each token."""
    batch = recorded_batch()
    logits = torch.tensor(RECORDED["student_logits"], dtype=torch.float64)[batch.mask]
    pi = signals_of(logits.requires_grad_(), batch, temperature)
    teacher_logp = pi["logp@teacher"].detach()
    batch = batch.with_signals(SignalDict({"logp@teacher": teacher_logp}))
    batch = batch.with_advantage(method.advantage)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    return loss.item(), gradient.flatten().tolist()


def tolerance(case: dict) -> dict[str, float]:
    return {"rel": 1e-5, "abs": 1e-6} if "dtype" in case else {"rel": 1e-6, "abs": 1e-11}


def test_every_recorded_loss_is_compared():
    assert set(RECORDED["cases"]) == set(METHODS)
    assert set(RECORDED["not_expressible"]) == set(NEAREST)


@pytest.mark.parametrize("name", METHODS)
def test_loss_and_gradient_equal_those_of_the_trainer(name):
    case = RECORDED["cases"][name]
    loss, gradient = loss_and_gradient(METHODS[name], case["options"].get("temperature", 1.0))
    recorded = [number for row in case["gradient"] for number in row]
    assert gradient == pytest.approx(recorded, **tolerance(case))
    if name not in GRADIENT_ONLY:
        assert loss == pytest.approx(case["loss"], **tolerance(case))


@pytest.mark.parametrize("name", NEAREST)
def test_losses_without_a_component_differ_from_the_nearest_one(name):
    case = RECORDED["not_expressible"][name]
    _, gradient = loss_and_gradient(NEAREST[name], 1.0)
    recorded = [number for row in case["gradient"] for number in row]
    difference = max(abs(x - y) for x, y in zip(gradient, recorded, strict=True))
    assert 0.05 * max(map(abs, recorded)) < difference < inf
