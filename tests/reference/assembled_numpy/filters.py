"""Methods that choose tasks, groups and rollouts."""

from math import lgamma

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    row_mean,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss, surrogate
from tests.reference.assembled_numpy.update import Update, reference

MIXED = (1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0)  # two groups have no spread


DISTINCT = (0.1, 0.9, 0.4, 0.35, 0.8, 0.05, 0.6, 0.7, 0.2, 0.95, 0.3, 0.45, 0.15, 0.85, 0.65)


ASCENDING = (0.1, 0.3, 0.35, 0.8, 0.9, 0.05, 0.2, 0.25, 0.6, 0.7, 0.95, 0.1, 0.15, 0.65, 0.85)


@reference(
    "arrol",
    "arXiv:2603.24840: GRPO, and the cross-entropy of a quality head, from memory of the paper;"
    " that both share one average is not stated in any source",
    reward="binary",
    signals={"step/score_position": [[0, 0, 0, i % 3 > 0, 0, 0, 0] for i in range(15)]},
)
def arrol(case: Case) -> Update:
    def loss(batch, pi):
        at = batch.signals["step/score_position"] * batch.mask
        label = batch.reward[:, None]
        entropy = np.log(1 + np.exp(pi["quality"])) - label * pi["quality"]
        return mean_of_row_means(surrogate(batch, pi) + at * entropy, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "bnpo",
    "changyi7231/BNPO, compute_bnpo_outcome_advantage of recipe/bnpo/src/bnpo_ray_trainer.py;"
    " loss_agg_mode seq-mean-token-sum of recipe/bnpo/run.sh",
)
def bnpo(case: Case) -> Update:
    rates = np.array([case.reward[case.group == g].mean() for g in np.unique(case.group)])
    mean, variance = rates.mean(), rates.var(ddof=1)
    common = mean * (1 - mean) / variance - 1
    alpha, beta = max(1, 1 + common * mean / 3), max(1, 1 + common * (1 - mean) / 3)
    p = group_mean(case.reward, case.group)
    log_beta = lgamma(alpha) + lgamma(beta) - lgamma(alpha + beta)
    density = p ** (alpha - 1) * (1 - p) ** (beta - 1) / np.exp(log_beta)
    with np.errstate(divide="ignore"):
        weight = np.clip(1 / density, 0, 1e6)

    def loss(batch, pi):
        return np.mean((surrogate(batch, pi, 0.2, 0.28) * batch.mask).sum(1))

    return Update(weight * (case.reward - p), loss)


@reference(
    "cppo",
    "arXiv:2503.22342, k = floor(G (1 - P)) rollouts are kept and their losses averaged;"
    " lzhxmu/CPPO, src/open_r1/grpo_trainer_gsm.py",
    reward=DISTINCT,
)
def cppo(case: Case) -> Update:
    z = z_score(case.reward, case.group)

    def loss(batch, pi):
        size = np.array([(batch.group == g).sum() for g in batch.group])
        below = np.array(
            [
                (np.abs(z[case.group == g]) < abs(a) - 1e-12).sum()
                for g, a in zip(batch.group, batch.advantage[:, 0], strict=True)
            ]
        )
        kept = below >= size - np.floor((1 - 0.5) * size)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        per_row = row_mean(surrogate(batch, pi) + 0.04 * kl, batch.mask)
        return per_row[kept].mean()

    return Update(z, loss, epochs=2)


@reference(
    "knapsack_rl",
    "liziniu/KnapsackRL, examples/knapsack_trainer/run_knapsack_grpo_7b.sh: GRPO of verl on groups"
    " of allocated sizes",
    groups=(2, 7, 3, 3),
)
def knapsack_rl(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo_loss(token_mean, 0.2, 0.28), minibatches=8)


@reference(
    "online_difficulty_filtering",
    "arXiv:2504.03380, balanced difficulty filtering; GRPO",
    reward=(1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1),
    groups=(3, 4, 4, 4),
)
def online_difficulty_filtering(case: Case) -> Update:
    accuracy = group_mean(case.reward, case.group)
    kept = (accuracy >= 0.25) & (accuracy <= 0.75)
    advantage = z_score(case.reward[kept], case.group[kept])
    return Update(advantage, ppo_loss(kl_coef=0.001), kept=kept)


@reference(
    "pods",
    "YixuanEvenXu/pods, open-r1/src/open_r1/grpo_trainer.py; the mean of rows from memory of"
    " arXiv:2504.13818",
    code="pods(num_kept=3)",
    reward=ASCENDING,
    groups=(5, 6, 4),
)
def pods(case: Case) -> Update:
    kept = np.zeros(len(case.reward), bool)
    for g in np.unique(case.group):
        rows = np.flatnonzero(case.group == g)
        order = rows[np.argsort(-case.reward[rows])]
        m = min(3, len(order))
        choices = [np.concatenate([order[:i], order[len(order) - m + i :]]) for i in range(m + 1)]
        kept[max(choices, key=lambda chosen: case.reward[chosen].var())] = True
    return Update(z_score(case.reward[kept], case.group[kept]), ppo_loss(), kept=kept)


@reference(
    "prs_vspo",
    "abstract of arXiv:2512.07478; the division of the advantage by the number of copies is the"
    " brief's",
    reward=MIXED,
    terms={"copies": (1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 3)},
)
def prs_vspo(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    advantage = z_score(case.reward[kept], case.group[kept]) / case.terms["copies"][kept]
    return Update(advantage, ppo_loss(kl_coef=0.001), kept=kept)


@reference(
    "reinforce_rej",
    "arXiv:2504.11343, eq. 5 with rewards of -1 and 1, from memory of the paper;"
    " RLHFlow/Minimal-RL, verl/trainer/ppo/core_algos.py",
    reward="binary",
)
def reinforce_rej(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    return Update(2 * case.reward[kept] - 1, ppo_loss(), minibatches=4, kept=kept)


@reference(
    "rlpr",
    "OpenBMB/RLPR, verl/workers/reward_manager/prob.py (shaping threshold_0),"
    " compute_grpo_outcome_advantage of core_algos.py, examples/RLPR/reproduce_qwen.sh",
    code="rlpr(min_std=0.25)",
    terms={
        "answer_probability": (0.9, 0.1, 0.4, 0.7, 0.3, 0.35, 0.3, 0.25, 0.8, 0, 1, 0.5, 0.6, 0, 1),
        "answer_probability_alone": (0.3,) * 4 + (0.1,) * 4 + (0.4,) * 4 + (0.5,) * 3,
    },
)
def rlpr(case: Case) -> Update:
    gain = case.terms["answer_probability"] - case.terms["answer_probability_alone"]
    reward = np.maximum(gain, 0)
    kept = group_std(reward, case.group) >= 0.25  # by n, all are narrower
    advantage = z_score(reward[kept], case.group[kept])
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.27), minibatches=4, kept=kept)


@reference("vade", "arXiv:2511.18902: GRPO on the sampled tasks")
def vade(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo_loss())
