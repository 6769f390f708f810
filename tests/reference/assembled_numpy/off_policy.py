"""Methods for rollouts that the trained policy did not sample itself: stale ones, other engines."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    k3,
    maximum,
    mean_of_row_means,
    mean_of_row_sums,
    minimum,
    row_mean,
    row_sum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import surrogate
from tests.reference.assembled_numpy.update import Update, reference


def engine_ratio(batch):
    """Old policy over inference engine, for each action."""
    return np.exp(batch.old_logp - batch.signals["logp@sampler"])


@reference("asymre", "arXiv:2506.20520, section 2: J = E[log pi (r - V)], V = mean + delta V")
def asymre(case: Case) -> Update:
    def loss(batch, pi):
        return np.mean(row_sum(-batch.advantage * pi["logp"], batch.mask))

    return Update(case.reward - (group_mean(case.reward, case.group) - 0.1), loss)


@reference(
    "bapo",
    "WooooDyy/BAPO, recipe/bapo/policy_loss.py; ranges of README.md",
    reward=(1, 0.25, 0, 0.25, 0.5, 1, 0.5, 0, 0.25, 0.75, 1, 0.75, 1, 0, 1),
    ratio_spread=2,
)
def bapo(case: Case) -> Update:
    def is_balanced(ratio, batch, low, high):
        a = batch.advantage
        effective = np.where(a >= 0, np.minimum(ratio, high), np.maximum(ratio, low)) * a
        positive = np.maximum(effective * batch.mask, 0).sum()
        return positive >= 0.5 * np.abs(effective * batch.mask).sum()

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        low, high = 0.6, 1.2
        while not is_balanced(np.real(ratio), batch, low, high) and low < 0.9:
            low = min(low + 0.05, 0.9)
        while not is_balanced(np.real(ratio), batch, low, high) and high < 3.0:
            high = min(high + 0.1, 3.0)
        per_action = clipped_surrogate(ratio, batch.advantage, 1 - low, high - 1)
        return token_mean(per_action, batch.mask)

    return Update(z_score(case.reward, case.group), loss, epochs=2, minibatches=4)


def dppo(case: Case, is_kept) -> Update:
    """The masked loss over 6, with a cap of 1.5.

    `is_kept(logp, engine_logp, advantage)` is True inside the trust region.
    """

    def loss(batch, pi):
        engine_logp = batch.signals["logp@sampler"]
        logp = stop_gradient(pi["logp"])
        weight = np.minimum(np.exp(logp - engine_logp), 1.5)
        keep = is_kept(logp, engine_logp, batch.advantage)
        per_action = -batch.advantage * weight * keep * pi["logp"]
        return mean_of_row_sums(per_action, batch.mask) / 6

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=8)


@reference(
    "dppo_kl",
    "sail-sg/Stable-RL, verl/trainer/ppo/core_algos.py: dppo_binary_kl; verl-project/verl,"
    " examples/dppo_trainer/run_qwen30b_dppo.sh",
    code="dppo_kl(cap=1.5, max_length=6)",
)
def dppo_kl(case: Case) -> Update:
    def is_kept(logp, engine_logp, advantage):
        p, q = np.exp(logp), np.exp(engine_logp)
        kl = q * (engine_logp - logp) + (1 - q) * np.log((1 - q + 1e-8) / (1 - p + 1e-8))
        return np.where(advantage > 0, (kl <= 0.05) | (p <= q), (kl <= 0.05) | (p >= q))

    return dppo(case, is_kept)


@reference(
    "dppo_tv",
    "sail-sg/Stable-RL, verl/trainer/ppo/core_algos.py: dppo_binary_tv; verl-project/verl,"
    " examples/dppo_trainer/run_qwen30b_dppo.sh",
    code="dppo_tv(cap=1.5, max_length=6)",
)
def dppo_tv(case: Case) -> Update:
    def is_kept(logp, engine_logp, advantage):
        difference = np.exp(logp) - np.exp(engine_logp)
        return np.where(advantage > 0, difference <= 0.15, difference >= -0.15)

    return dppo(case, is_kept)


@reference("gvpo", "jszkc/GVPO, GVPO/gvpo_core_algos.py: compute_policy_loss_gvpo")
def gvpo(case: Case) -> Update:
    def loss(batch, pi):
        implied = 0.1 * row_sum(pi["logp"] - batch.old_logp, batch.mask)
        residual = (
            implied - group_mean(implied, batch.group) - batch.advantage.sum(1) / (batch.lengths)
        )
        sizes = np.array([(batch.group == g).sum() for g in batch.group])
        return (0.5 * residual**2 / (sizes - 1)).sum() / len(set(batch.group))

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=4)


@reference(
    "icepop",
    "arXiv:2510.18855, IcePop objective: M(k; alpha, beta) = k inside the interval, 0 outside",
    code="icepop(min_ratio=0.7, max_ratio=1.4)",
)
def icepop(case: Case) -> Update:
    def loss(batch, pi):
        k = engine_ratio(batch)
        weight = np.where((k >= 0.7) & (k <= 1.4), k, 0.0)
        return mean_of_row_means(weight * surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "m2po",
    "arXiv:2510.01161; the constrained tokens are those of Infini-AI-Lab/M2PO,"
    " verl/trainer/ppo/core_algos.py: _get_trust_region_tokens_delta_sq",
)
def m2po(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = pi["logp"] - batch.old_logp
        change = np.real(log_ratio)
        harmful = ((batch.advantage > 0) & (change > 0)) | ((batch.advantage < 0) & (change < 0))
        harmful = harmful & batch.mask
        squares = np.sort(change[harmful] ** 2)
        means = np.cumsum(squares) / np.arange(1, len(squares) + 1)
        largest = squares[means <= 0.04].max(initial=0.0)
        keep = ~harmful | (change**2 <= largest)
        return token_mean(-(keep * np.exp(log_ratio) * batch.advantage), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "minirl", "arXiv:2512.01374, section 4.1, from memory of the paper", code="minirl(cap=1.5)"
)
def minirl(case: Case) -> Update:
    def loss(batch, pi):
        a = batch.advantage
        logp = stop_gradient(pi["logp"])
        ratio = np.exp(logp - batch.old_logp)
        keep = ~(((a > 0) & (ratio > 1.27)) | ((a < 0) & (ratio < 0.8)))
        weight = np.minimum(np.exp(logp - batch.signals["logp@sampler"]), 1.5)
        return np.mean(row_sum(-(keep * weight * a) * pi["logp"], batch.mask))

    return Update(case.reward - group_mean(case.reward, case.group), loss)


@reference("off_policy_sequence_masking", "arXiv:2512.02556, eq. 7 to 9; TRL grpo_trainer.py")
def off_policy_sequence_masking(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        drift = row_sum(batch.signals["logp@sampler"] - np.real(pi["logp"]), batch.mask)
        masked = (batch.advantage < 0) & (drift / batch.lengths > 0.1)[:, None]
        kl = ratio * k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(~masked * surrogate(batch, pi) + 0.001 * kl, batch.mask)

    return Update(case.reward - group_mean(case.reward, case.group), loss)


@reference("opmd", "arXiv:2501.12599, section 2.3.2, gradient after eq. 3", groups=(4, 4, 4, 4))
def opmd(case: Case) -> Update:
    def loss(batch, pi):
        logp = row_sum(pi["logp"], batch.mask)
        log_ratio = logp - row_sum(batch.old_logp, batch.mask)
        advantage = batch.advantage.sum(1) / batch.lengths
        return np.mean(-advantage * logp + 0.1 / 2 * log_ratio**2)

    return Update(case.reward - group_mean(case.reward, case.group), loss)


@reference("reg_grpo", "arXiv:2506.07464, section 3.2, eq. 5, 7 and 8: a mean for each prompt")
def reg_grpo(case: Case) -> Update:
    def loss(batch, pi):
        rho = row_sum(pi["logp"] - batch.old_logp, batch.mask)
        centred = rho - group_mean(rho, batch.group)
        std = np.sqrt(group_mean(centred**2, batch.group))
        target = batch.advantage.sum(1) / batch.lengths
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        error = (target - centred / std) ** 2 + 0.04 * row_mean(kl, batch.mask)
        return np.mean([error[batch.group == g].mean() for g in np.unique(batch.group)])

    return Update(z_score(case.reward, case.group, ddof=0), loss)


@reference(
    "remix",
    "formulas of Mix-PPG, KL-Convex and lambda in a note on the ICLR 2026 paper (arXiv:2507.06892)",
)
def remix(case: Case) -> Update:
    def loss(batch, pi):
        a = batch.advantage
        ratio = np.exp(pi["logp"] - batch.old_logp)
        centre = np.exp(batch.signals["logp@current"] - batch.old_logp)
        bounded = minimum(maximum(ratio, centre - 0.2), centre + 0.2)
        per_action = -minimum(ratio * a, bounded * a)
        kl = k3(pi["logp"], batch.signals["logp@ref"])  # lambda is 1 in the first 50 steps
        return mean_of_row_means(per_action + 0.001 * kl - 0.001 * pi["entropy"], batch.mask)

    return Update(z_score(case.reward, case.group), loss, epochs=2)


@reference("seq_mis", "TRL grpo_trainer.py: sequence_mask")
def seq_mis(case: Case) -> Update:
    def loss(batch, pi):
        weight = np.exp(row_sum(batch.old_logp - batch.signals["logp@sampler"], batch.mask))
        weight = np.where(weight <= 2, weight, 0)[:, None]
        return mean_of_row_means(weight * surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("seq_tis", "TRL grpo_trainer.py: sequence_truncate")
def seq_tis(case: Case) -> Update:
    def loss(batch, pi):
        weight = np.exp(row_sum(batch.old_logp - batch.signals["logp@sampler"], batch.mask))
        return mean_of_row_means(np.minimum(weight, 2)[:, None] * surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("skywork_r1v2", "arXiv:2504.16656: GRPO on rollouts with an advantage", reward="binary")
def skywork_r1v2(case: Case) -> Update:
    def loss(batch, pi):
        return mean_of_row_means(surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("tis", "verl rollout correction, token level", code="tis(cap=1.4)")
def tis(case: Case) -> Update:
    def loss(batch, pi):
        return mean_of_row_means(
            np.minimum(engine_ratio(batch), 1.4) * surrogate(batch, pi), batch.mask
        )

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "topr",
    "arXiv:2503.14286, eq. 7 and 8; sections 4.1 and 4.2 for the length",
)
def topr(case: Case) -> Update:
    def loss(batch, pi):
        a = batch.advantage
        ratio = np.exp(row_sum(np.real(pi["logp"]) - batch.old_logp, batch.mask))[:, None]
        weight = np.where(a < 0, np.clip(ratio, 0, 1), 1)
        return mean_of_row_means(-weight * a * pi["logp"], batch.mask)

    return Update(case.reward - 0.5, loss)


@reference(
    "trm",
    "arXiv:2512.23075; verl rollout correction, seq_max_k3 and seq_mean_k3",
    code="trm(max_token_kl=0.2, max_mean_kl=0.08)",
)
def trm(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = batch.old_logp - batch.signals["logp@sampler"]
        kl = np.exp(log_ratio) - 1 - log_ratio
        keep = ((kl * batch.mask).max(1) <= 0.2) & (row_sum(kl, batch.mask) / batch.lengths <= 0.08)
        return mean_of_row_means(keep[:, None] * surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("vespo", "FloyedShen/VESPO, recipe/vespo/code/core_algos.py")
def vespo(case: Case) -> Update:
    def loss(batch, pi):
        a = batch.advantage
        log_w = row_sum(np.real(pi["logp"]) - batch.old_logp, batch.mask)[:, None]
        k, decay = np.where(a >= 0, 2.0, 3.0), np.where(a >= 0, 3.0, 2.0)
        phi = np.exp(decay + k * log_w - decay * np.exp(log_w))
        return token_mean(-phi * a * pi["logp"], batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=8)
