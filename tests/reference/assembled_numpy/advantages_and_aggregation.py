"""Methods that change the advantage estimator or the average over actions."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "gdpo",
    "NVlabs/GDPO: trl-GDPO/trl-0.18.0-gdpo/trl/trainer/grpo_trainer.py, lines 1222 to 1253; the"
    " mean over answers is that of the paper's GRPO objective (from memory), while the releases"
    " have a mean over tokens",
    code="gdpo(reward_weights=(1.0, 0.5))",
)
def gdpo(case: Case) -> Update:
    correct = z_score(case.terms["correct"], case.group, eps=1e-4)
    formatted = z_score(case.terms["format"], case.group, eps=1e-4)
    total = 1.0 * correct + 0.5 * formatted
    advantage = (total - total.mean()) / (total.std(ddof=1) + 1e-4)

    loss = ppo_loss()
    return Update(advantage, loss)


@reference(
    "gpg",
    "AMAP-ML/GPG: compute_loss and inverse_alpha in open-r1/src/open_r1/gpg_trainer.py",
    groups=(4, 4, 4, 4),
)
def gpg(case: Case) -> Update:
    has_spread = group_std(case.reward, case.group) > 0
    groups = np.unique(case.group)
    alpha = len(groups) / len(np.unique(case.group[has_spread]))

    def loss(batch, pi):
        return token_mean(-pi["logp"] * batch.advantage, batch.mask)

    return Update(alpha * (case.reward - group_mean(case.reward, case.group)), loss)


@reference(
    "krpo",
    "billhhh/KRPO_LLMs_RL: KalmanFilter and group_advantages in train.py, GRPOLoss in loss.py",
    groups=(1,) * 16,
    not_compared=dict.fromkeys(
        ("token mean for mean of rows", "sum for mean"),
        "the order of a group is random, so groups, and with them minibatches, have one rollout",
    ),
    reward=[0.9, -0.4, -0.3, -0.8, 1.0, -0.2, 0.6, -0.7, 0.0, 0.5, -0.9, 0.2, -0.6, 0.3, -0.1, 0.4],
)
def krpo(case: Case) -> Update:
    process, measurement = 1e-5, 1e-2
    advantage = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        mean, variance = 0.0, 1.0
        for i in np.flatnonzero(case.group == g):
            predicted = variance + process
            gain = predicted / (predicted + measurement)
            mean = mean + gain * (case.reward[i] - mean)
            variance = (1 - gain) * predicted
            advantage[i] = (case.reward[i] - mean) / (np.sqrt(variance) + 1e-8)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(surrogate + 0.01 * kl, batch.mask)

    return Update(advantage, loss, minibatches=24)


@reference(
    "lite_ppo",
    "arXiv:2508.08221, section 5 (from memory of the paper); TRL's index of papers:"
    " scale_rewards='batch', loss_type='dapo'",
)
def lite_ppo(case: Case) -> Update:
    centered = case.reward - group_mean(case.reward, case.group)

    loss = ppo_loss(token_mean)
    return Update(centered / (case.reward.std(ddof=1) + 1e-6), loss)


@reference(
    "low_prob_tokens",
    "zhyang2226/AR-Lopti: compute_reweight_advantage (both_linear_normal) in"
    " verl/trainer/ppo/ray_trainer.py, scripts/train_kklogic_AR_4x80GB.sh",
)
def low_prob_tokens(case: Case) -> Update:
    weight = 0.2 * np.exp(case.old_logp) + (1 - 0.2)

    loss = ppo_loss()
    return Update(weight * z_score(case.reward, case.group)[:, None], loss, minibatches=2)


@reference(
    "mapo",
    "WenkeHuang/MAPO: GRPOMIXPRO in code/verl/trainer/ray_trainer.py and"
    " compute_grpo_mean_outcome_advantage in core_algos.py; arXiv:2509.18849, eq. 4 to 6",
    reward=[0.5, 1, 0.5, 0, 0, 1, 0.3, 1, 0, 0, 0, 0, 1, 0.5, 1],
)
def mapo(case: Case) -> Update:
    p = group_mean(case.reward == 1.0, case.group)
    mean = group_mean(case.reward, case.group)
    by_std = z_score(case.reward, case.group, ddof=0)
    by_mean = (case.reward - mean) / (mean + 1e-6)
    certainty = 4 * p * (1 - p)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(surrogate + 0.01 * kl, batch.mask)

    return Update(certainty * by_std + (1 - certainty) * by_mean, loss, minibatches=4)


@reference(
    "mc_grpo",
    "lotusroot-kim/MC-GRPO: lines 2026 to 2085 and 2144 to 2185 of"
    " src/open_r1/grpo_trainer_math.py, recipes/math/Qwen2.5-7B-Instruct.yaml; arXiv:2601.22582",
    groups=(5, 5, 3),
    reward=[0.1, 0.9, 0.4, 0.3, 0.8, 1.0, 0.2, 0.6, 0.7, 0.0, 0.5, 0.9, 0.2],
)
def mc_grpo(case: Case) -> Update:
    advantage = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        r = case.reward[case.group == g]
        distance = np.abs(r - np.median(r))
        advantage[case.group == g] = (r - np.median(r)) / (np.median(distance) + 1e-3)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        is_pivot = batch.advantage[:, 0] == 0  # rewards of a group are distinct
        per_action = surrogate + 0.04 * kl
        return mean_of_row_means(per_action[~is_pivot], batch.mask[~is_pivot])

    return Update(advantage, loss, epochs=2)


@reference(
    "pacs",
    "ritzz-ai/PACS: compute_pacs_loss in src/pacs/pacs_core_algos.py,"
    " scripts/pacs/pacs_beta_1.0.sh",
    reward=[0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1],
)
def pacs(case: Case) -> Update:
    def loss(batch, pi):
        score = ((pi["logp"] - batch.old_logp) * batch.mask).sum(1)
        total = 0
        for g in np.unique(batch.group):
            s, label = score[batch.group == g], batch.reward[batch.group == g]
            logit = s - (s.sum() - s) / (len(s) - 1)
            num_correct = label.sum()
            is_mixed = 0 < num_correct < len(label)
            count = np.where(label == 1, num_correct, len(label) - num_correct)
            weight = len(label) / (2 * count) if is_mixed else np.ones(len(label))
            total = total + (weight * (np.log(1 + np.exp(logit)) - label * logit)).sum()
        return total / len(score)

    return Update(None, loss, minibatches=4)


@reference("remax", "arXiv:2310.10505, algorithm 1 (from memory of the paper)", groups=(1,) * 12)
def remax(case: Case) -> Update:
    def loss(batch, pi):
        return np.mean(-(pi["logp"] * batch.advantage * batch.mask).sum(1))

    return Update(case.reward - case.terms["greedy"], loss)


@reference(
    "soft_verifier",
    "arXiv:2503.23829, section 3 (from memory of the paper)",
    groups=(1,) * 12,
    terms={"verified": "real"},
)
def soft_verifier(case: Case) -> Update:
    r = case.terms["verified"]

    def loss(batch, pi):
        return np.mean(-(pi["logp"] * batch.advantage * batch.mask).sum(1))

    return Update((r - r.mean()) / r.std(), loss)


@reference("two_grpo", "arXiv:2510.00977 (from memory of the paper)", groups=(2,) * 7)
def two_grpo(case: Case) -> Update:
    loss = ppo_loss()
    return Update(z_score(case.reward, case.group, ddof=0), loss)
