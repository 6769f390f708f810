"""Methods that imitate given answers or the best answers of the policy."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clip,
    group_mean,
    maximum,
    mean_of_row_means,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "cgpo_crraft",
    "arXiv:2409.20370, eq. 18; huggingface/trl, pull request 2190, trl/trainer/cgpo_trainer.py",
    code="cgpo_crraft(max_kl=0.3)",
    terms={"feasible": "binary", "baseline": "real"},
)
def cgpo_crraft(case: Case) -> Update:
    kl = ((case.old_logp - case.signals["logp@ref"]) * case.mask).sum(1)
    calibrated = 1 / (1 + np.exp(-(case.reward - case.terms["baseline"])))
    score = calibrated * case.terms["feasible"] * (kl <= 0.3)
    weight = np.zeros(len(score))
    for g in np.unique(case.group):
        best = np.argmax(np.where(case.group == g, score, -1))
        weight[best] = score[best]

    def loss(batch, pi):
        # the draft divides by the number of groups with such an answer, not by that of all rows
        return np.mean(-(batch.advantage * pi["logp"] * batch.mask).sum(1))

    return Update(weight, loss)


@reference("dft", "arXiv:2508.05629; yongliang-wu/DFT: verl/verl/trainer/fsdp_dft_trainer.py")
def dft(case: Case) -> Update:
    def loss(batch, pi):
        return token_mean(-stop_gradient(np.exp(pi["logp"])) * pi["logp"], batch.mask)

    return Update(None, loss)


@reference("nft", "NVlabs/NFT: dp_actor.py, train_7B.sh", reward="binary")
def nft(case: Case) -> Update:
    rate = group_mean(case.reward, case.group)
    kept = (rate > 0) & (rate < 1)

    def loss(batch, pi):
        p = np.clip(group_mean(batch.reward, batch.group), 0.02, 0.98)[:, None]
        ratio = np.exp(pi["logp"] - batch.old_logp)
        implicit = (1 - p * ratio) / (1 - p)
        straight_through = implicit + stop_gradient(maximum(implicit, 1.0) - implicit)
        correct = batch.reward[:, None]
        nll = -correct * np.log(ratio) - (1 - correct) * np.log(straight_through)
        return np.mean((nll * (1 - p) * batch.mask).sum(1)) / 1000

    return Update(None, loss, minibatches=16, kept=kept)


@reference("pdr", "arXiv:2510.01123, from memory of the paper; CISPO, arXiv:2506.13585, eq. 4")
def pdr(case: Case) -> Update:
    def loss(batch, pi):
        # the NLL is a mean over the correct rollouts of each group
        weight = stop_gradient(clip(np.exp(pi["logp"] - batch.old_logp), 0.0, 1.2))
        correct = batch.reward > 0.5
        per_group = correct / np.maximum(group_mean(correct, batch.group), 1e-9)
        objective = (weight * batch.advantage + 0.1 * per_group[:, None]) * pi["logp"]
        return mean_of_row_means(-objective, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("rft", "arXiv:2203.14465, algorithm 1", terms={"correct": "binary"})
def rft(case: Case) -> Update:
    def loss(batch, pi):
        return token_mean(-pi["logp"], batch.mask)

    return Update(None, loss, kept=case.terms["correct"] > 0.5)


@reference("sft", "arXiv:2203.02155, section 3.5; TRL's SFTTrainer")
def sft(case: Case) -> Update:
    def loss(batch, pi):
        return token_mean(-pi["logp"], batch.mask)

    return Update(None, loss)
