"""Methods with hints, refinements, feedback or replays in the group."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    k3,
    mean_of_row_means,
    minimum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import surrogate
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "critique_grpo",
    "arXiv:2506.03106, A = r - mean(r); zhangxy-2019/critique-GRPO,"
    " verl/verl/critique_grpo/critique_core_algos.py: compute_token_on_off_policy_loss",
    value_differs="the method states the ratio's gradient as that of a constant times log pi",
)
def critique_grpo(case: Case) -> Update:
    def loss(batch, pi):
        p = np.exp(pi["logp"])
        ratio = np.exp(pi["logp"] - batch.old_logp)
        weight = np.where(batch.signals["off_context"] == 1, p / (p + 0.1), ratio)
        losses = -batch.advantage * weight - 0.001 * pi["entropy"]
        return np.mean((losses * batch.mask).sum(1) / 64)

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=2)


@reference("ghpo", "hkgc-1/GHPO, src/ghpo/ghpo_trainer.py; loss_type bnpo")
def ghpo(case: Case) -> Update:
    def loss(batch, pi):
        return token_mean(surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group, eps=1e-4), loss)


@reference(
    "guide_grpo",
    "vaskar-open-source-research/guide_rl, verl/verl/trainer/ppo/core_algos.py:"
    " compute_policy_loss, gamma_strategy percentile; guide_grpo_qwen.sh, whose micro-batch is one"
    " answer",
    reward=(1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1),
)
def guide_grpo(case: Case) -> Update:
    accuracy = group_mean(case.reward, case.group)
    kept = (accuracy > 0.001) & (accuracy < 0.999)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        quantile = [np.quantile(np.real(r)[m], 0.9) for r, m in zip(ratio, batch.mask, strict=True)]
        quantile = np.maximum(quantile, 1e-4)[:, None]
        shaped = -batch.advantage * ratio / (ratio + quantile)
        losses = np.where(batch.signals["off_context"] == 1, shaped, surrogate(batch, pi))
        return mean_of_row_means(losses, batch.mask)

    advantage = z_score(case.reward[kept], case.group[kept])
    return Update(advantage, loss, minibatches=2, kept=kept)


@reference("policyrollout", "arXiv:2510.09474, objective of PoRo-GRPO as quoted in a note")
def policyrollout(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.signals["logp@current"])
        per_action = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(per_action + 0.001 * kl, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


# rows 1, 6 and 11 are replays; rows 7, 8 and 13 to 15 saw a failure; row 12 is not truncated
R3_ENTROPY = np.full((16, 7), 0.7)
for row, highest, others in (
    (0, 1.5, 0.3),
    (2, 2.0, 0.1),
    (3, 1.0, 0.5),
    (9, 1.5, 0.4),
    (10, 2.0, 0.1),
    (13, 1.9, 0.4),
    (14, 1.2, 0.6),
    (15, 2.2, 0.05),
):
    R3_ENTROPY[row] = others
    R3_ENTROPY[row, 3] = highest


@reference(
    "r3",
    "arXiv:2601.19620, algorithm 1, eq. 1 to 3 and sections 3.1 to 3.2.4; R_max = 0.1 and alpha = 2"
    " are the method's own choice, and so is p, of which the batch needs only that it is below 1/3",
    groups=(4, 5, 4, 3),
    reward=(0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0),
    terms={"saw_failure": (0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1)},
    signals={"entropy": R3_ENTROPY.tolist()},
    lengths=(7, 4, 6, 5, 5, 4, 7, 5, 6, 7, 6, 7, 2, 7, 6, 5),
)
def r3(case: Case) -> Update:
    prompt = 2 * case.group + case.terms["saw_failure"]
    is_replay = (case.signals["off_context"] * case.mask).any(1)
    reward = case.reward.copy()
    for g in set(prompt):
        rows = np.flatnonzero((prompt == g) & ~is_replay)
        if (case.reward[rows] > 0).any():
            continue
        truncated = [i for i in rows if case.lengths[i] >= 4]
        entropy = [case.signals["entropy"][i][case.mask[i]] for i in truncated]
        peak, mean = [e.max() for e in entropy], [e.mean() for e in entropy]
        scores = [
            sum(p > q and m < n for q, n in zip(peak, mean, strict=True))
            for p, m in zip(peak, mean, strict=True)
        ]
        for k, best in enumerate(np.argsort(scores)[::-1]):
            reward[truncated[best]] = 0.1 * (1 - k / (len(truncated) - 1))

    def loss(batch, pi):
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(surrogate(batch, pi) + 0.001 * kl, batch.mask)

    alpha = np.where([is_replay[prompt == g].any() for g in prompt], 2.0, 1.0)
    return Update(z_score(reward, prompt) / alpha, loss)


@reference("rgr_grpo", "arXiv:2511.12344, from memory of the paper")
def rgr_grpo(case: Case) -> Update:
    def loss(batch, pi):
        p = np.exp(pi["logp"])
        shaped = -batch.advantage * p / (p + 0.1)
        losses = np.where(batch.signals["off_context"] == 1, shaped, surrogate(batch, pi))
        return mean_of_row_means(losses, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("scaf_grpo", "arXiv:2510.19807; dvlab-research/Scaf-GRPO, sh/.../bs256_6k_mix.sh")
def scaf_grpo(case: Case) -> Update:
    def loss(batch, pi):
        return mean_of_row_means(surrogate(batch, pi), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "thinktuning",
    "3rdAT/ThinkTuning, verl/recipe/thinktuning/core_algos.py: compute_policy_loss",
    reward=(1, 0, 0.5, 0, 1, 0.2, 0.9, 0, 0, 1, 0.5, 0.1, 1, 0.3, 0),
    ratio_spread=12,
)
def thinktuning(case: Case) -> Update:
    def loss(batch, pi):
        a, p = batch.advantage, np.exp(pi["logp"])
        ratio = np.exp(pi["logp"] - batch.signals["logp@current"])
        per_action = clipped_surrogate(ratio, a, 0.2, 0.2)
        per_action = np.where(a < 0, minimum(per_action, -3.0 * a), per_action)
        gamma = np.clip(-0.001 + 0.002 * (a + 4) / 8, -0.001, 0.001)
        shifted = stop_gradient(p) + gamma
        shifted = np.where(shifted < 0, stop_gradient(p) / 1.0001, shifted)
        shifted = np.where(shifted > 1, stop_gradient(p) / 0.9999, shifted)
        rare = (a < 0) & (np.real(p) < 0.01)
        is_teacher = (batch.signals["sampled"] == 0) & ~rare
        return token_mean(np.where(is_teacher, -a * p / shifted, per_action), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "vl_rethinker",
    "TIGER-AI-Lab/VL-Rethinker, openrlhf/models/loss.py: PolicyLoss",
    reward="half",
    terms={"rethought": "binary"},
)
def vl_rethinker(case: Case) -> Update:
    def loss(batch, pi):
        rethought = (batch.terms["rethought"] > 0)[:, None] & (batch.advantage > 0)
        likelihood = -pi["logp"] * rethought
        return token_mean(surrogate(batch, pi, 0.2, 0.35) + 0.05 * likelihood, batch.mask)

    return Update(case.reward - group_mean(case.reward, case.group), loss, minibatches=8)
