"""Methods for pass@k, rare answers and exploration."""

from math import comb

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    group_mean,
    group_std,
    maximum,
    row_mean,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "a_grae",
    "Yu7-code/A-GRAE, compute_grpo_outcome_advantage (grpo_weight 2) of"
    " verl/trainer/ppo/core_algos.py; run_qwen2.5-math-7b-grpo-agrae.sh",
)
def a_grae(case: Case) -> Update:
    z = z_score(case.reward, case.group)
    root = np.sqrt(group_mean(case.reward, case.group))
    hard, easy = 0.5 * z / (root + 1e-6), 0.5 * z / (1 - root + 1e-6)
    progress = np.mean([case.reward[case.group == g].mean() for g in np.unique(case.group)])
    advantage = (1 - progress) * easy + progress * hard
    advantage = advantage * np.where(advantage > 0, min(1, progress / 1.0), 1)
    return Update(advantage, ppo_loss(), minibatches=4)


@reference("ace", "arXiv:2602.21420, abstract; softplus and its place from memory of the paper")
def ace(case: Case) -> Update:
    z = z_score(case.reward, case.group)
    shift = ((case.old_logp - case.signals["logp@ref"]) * case.mask).sum(1)
    return Update(z * np.where(z < 0, 1 + np.log1p(np.exp(shift)), 1), ppo_loss())


@reference(
    "disco",
    "Optimization-AI/DisCO, compute_policy_loss_disco_logL of verl/verl/trainer/ppo/core_algos.py",
    reward="binary",
    value_differs="The release's value has the sum of exponentials over its constant copy for the"
    " logarithm, and the slack of the constraint as a constant.",
)
def disco(case: Case) -> Update:
    def loss(batch, pi):
        score = row_mean(pi["logp"], batch.mask)
        groups = np.unique(batch.group)
        total = 0
        for g in groups:
            correct = score[(batch.group == g) & (batch.reward > 0)]
            wrong = score[(batch.group == g) & (batch.reward <= 0)]
            if len(correct) and len(wrong):
                total = total + correct.mean() - 10 * np.log(np.mean(np.exp(wrong / 10)))
        kl = token_mean(batch.old_logp - pi["logp"], batch.mask)
        slack = stop_gradient(maximum(1000 * (kl - 1e-4), np.zeros(())))
        return -total / len(groups) + slack * kl

    return Update(None, loss, minibatches=4)


@reference(
    "max_rl",
    "tajwarfahim/maxrl, compute_maxrl_outcome_advantage of verl/trainer/ppo/core_algos.py;"
    " qwen3_experiments/run_qwen3_training.sh",
)
def max_rl(case: Case) -> Update:
    mean = group_mean(case.reward, case.group)
    return Update((case.reward - mean) / (mean + 1e-6), ppo_loss(token_mean))


@reference(
    "nsr",
    "TianHongZXY/RLVR-Decomposed, compute_psr_nsr_outcome_advantage ('negative') of"
    " verl/trainer/ppo/core_algos.py and batch.subset(incorrect_idx) of ray_trainer.py",
    reward="binary",
)
def nsr(case: Case) -> Update:
    kept = case.reward == 0
    return Update(case.reward[kept] - 1, ppo_loss(token_mean), minibatches=4, kept=kept)


@reference(
    "passk_leave_one_out",
    "arXiv:2503.19595, policy gradient of whole answers; verl,"
    " compute_grpo_passk_outcome_advantage without division by std",
)
def passk_leave_one_out(case: Case) -> Update:
    best_of_others = np.array(
        [
            np.delete(case.reward, i)[np.delete(case.group, i) == case.group[i]].max()
            for i in range(len(case.reward))
        ]
    )

    def loss(batch, pi):
        return np.mean((-batch.advantage * pi["logp"] * batch.mask).sum(1))

    return Update(np.maximum(case.reward - best_of_others, 0), loss)


@reference(
    "passk_training",
    "RUCAIBox/Passk_Training, calc_adv of code/passk_adv.py",
    code="passk_training(k=3)",
    reward=(1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0),
    groups=(6, 5, 2, 2),
)
def passk_training(case: Case) -> Update:
    advantage = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        rows = np.flatnonzero(case.group == g)
        n, c = len(rows), int(case.reward[rows].sum())
        k = min(3, n)
        pass_at_k = 1 - comb(n - c, k) / comb(n, k)
        sigma = np.sqrt(pass_at_k * (1 - pass_at_k)) + 1e-6
        others_fail = comb(n - c - 1, k - 1) / comb(n - 1, k - 1) if c < n else 0.0
        positive, negative = 1 - pass_at_k, 1 - pass_at_k - others_fail
        advantage[rows] = np.where(case.reward[rows] == 1, positive, negative) / sigma
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.28))


@reference(
    "riskpo",
    "RTkenny/RiskPO, compute_grpo_bundle_rvar_outcome_advantage_quantile_tracking of"
    " verl/trainer/ppo/core_algos.py; scripts/run_qwen2.5_1.5b_MVaR_math.sh",
    code="riskpo(bundle_size=1)",
)
def riskpo(case: Case) -> Update:
    """Bundles of one task, since the source pairs rollouts of a bundle by their order.

    The quantiles of all scores of the batch are the first ones that the source tracks.
    """
    score = case.reward
    low, high = np.quantile(score, 0.2), np.quantile(score, 0.9)
    middle = np.maximum(score - low, 0) - np.maximum(score - high, 0) + low - high
    tail = -np.maximum(low - score, 0)
    risk = (1.5 * tail / 0.2 + middle / (0.9 - 0.2)) / (1.5 + 1)
    std = group_std(case.reward, case.group)
    std = np.where(std > 1e-3, std, 1)
    return Update(risk / std / std, ppo_loss(), minibatches=2)


@reference("soft_grpo", "zz1358m/SofT-GRPO-master, SofT-GRPO-deepscaler-8k.sh: GRPO of verl 0.4")
def soft_grpo(case: Case) -> Update:
    advantage = z_score(case.reward, case.group)
    return Update(advantage, ppo_loss(kl_coef=0.001), minibatches=2)


@reference(
    "spo_single_stream",
    "verl-project/verl-recipe, spo/spo_ray_trainer.py and spo/train.sh",
    groups=(1,) * 12,
    reward=(1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 0),
    history=[[], [[1]], [[0]], [[1], [1]], [[0], [1]], [[0], [0], [0]], [[1]], *[[[0], [0]]] * 5],
)
def spo_single_stream(case: Case) -> Update:
    p = np.zeros(len(case.reward))
    for i, groups in enumerate(case.history):
        alpha = beta = 0.5
        for r in np.concatenate([np.asarray(x, float) for x in groups] or [np.zeros(0)]):
            alpha, beta = 0.875 * alpha + r, 0.875 * beta + 1 - r
        p[i] = alpha / (alpha + beta)
    difference = case.reward - p
    advantage = (difference - difference.mean()) / (difference.std(ddof=1) + 1e-8)
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.28), minibatches=8)


@reference(
    "unlikeliness",
    "AndreHe02/rewarding-unlikely-release, _compute_advantages of"
    " verl/trainer/ppo/ray_lean_trainer.py, lean_trainer.yaml, examples/lean/grpo.sh",
    reward="binary",
)
def unlikeliness(case: Case) -> Update:
    likelihood = row_mean(case.old_logp, case.mask)
    same = case.group[:, None] == case.group
    rank = (same & (likelihood < likelihood[:, None])).sum(1) / same.sum(1)
    reward = case.reward * (1 - 0.25 * rank)
    return Update(z_score(reward, case.group), ppo_loss(token_mean, kl_coef=0.1), epochs=2)


@reference(
    "w_reinforce",
    "TianHongZXY/RLVR-Decomposed, compute_psr_nsr_outcome_advantage ('weighted') of"
    " verl/trainer/ppo/core_algos.py; run_qwen2.5-math-7b_psr_nsr.sh",
    reward="binary",
)
def w_reinforce(case: Case) -> Update:
    return Update(np.where(case.reward == 1, 0.1, -1.0), ppo_loss(token_mean), minibatches=4)


@reference(
    "xrpo",
    "arXiv:2510.06672, novelty-guided advantage sharpening, as in Wodlfvllf/grpo-composer,"
    " core/advantages/novelty_sharpening.py",
)
def xrpo(case: Case) -> Update:
    z = z_score(case.reward, case.group)
    likelihood = row_mean(case.old_logp, case.mask)
    novelty = np.exp(likelihood - group_mean(likelihood, case.group))
    bonus = np.minimum(np.maximum(2.5 * (1 - novelty), 0), 0.5 * z)
    return Update(z + np.where(z > 0, bonus, 0), ppo_loss())
