"""Methods that explore, allocate rollouts, or select what is trained on."""

from math import comb, lgamma

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    group_mean,
    group_std,
    k3,
    maximum,
    mean_of_row_means,
    row_mean,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import (
    clipped_row_mean,
    clipped_token_mean,
    surrogate,
    with_kl,
)
from tests.reference.assembled_numpy.update import Update, reference

MIXED = (1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0)  # two groups have no spread
DISTINCT = (0.1, 0.9, 0.4, 0.35, 0.8, 0.05, 0.6, 0.7, 0.2, 0.95, 0.3, 0.45, 0.15, 0.85, 0.65)
ASCENDING = (0.1, 0.3, 0.35, 0.8, 0.9, 0.05, 0.2, 0.25, 0.6, 0.7, 0.95, 0.1, 0.15, 0.65, 0.85)


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
    return Update(advantage, clipped_row_mean(), minibatches=4)


@reference("ace", "arXiv:2602.21420, abstract; softplus and its place from memory of the paper")
def ace(case: Case) -> Update:
    z = z_score(case.reward, case.group)
    shift = ((case.old_logp - case.signals["logp@ref"]) * case.mask).sum(1)
    return Update(z * np.where(z < 0, 1 + np.log1p(np.exp(shift)), 1), clipped_row_mean())


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
    "knapsack_rl", "arXiv:2509.25849: GRPO on groups of allocated sizes", groups=(2, 7, 3, 3)
)
def knapsack_rl(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), clipped_row_mean())


@reference(
    "max_rl",
    "tajwarfahim/maxrl, compute_maxrl_outcome_advantage of verl/trainer/ppo/core_algos.py;"
    " qwen3_experiments/run_qwen3_training.sh",
)
def max_rl(case: Case) -> Update:
    mean = group_mean(case.reward, case.group)
    return Update((case.reward - mean) / (mean + 1e-6), clipped_token_mean())


@reference(
    "nsr",
    "TianHongZXY/RLVR-Decomposed, compute_psr_nsr_outcome_advantage ('negative') of"
    " verl/trainer/ppo/core_algos.py and batch.subset(incorrect_idx) of ray_trainer.py",
    reward="binary",
)
def nsr(case: Case) -> Update:
    kept = case.reward == 0
    return Update(case.reward[kept] - 1, clipped_token_mean(), minibatches=4, kept=kept)


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
    return Update(advantage, with_kl(0.001, mean_of_row_means), kept=kept)


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
    return Update(advantage, clipped_token_mean(0.2, 0.28))


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
    return Update(z_score(case.reward[kept], case.group[kept]), clipped_row_mean(), kept=kept)


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
    return Update(advantage, with_kl(0.001, mean_of_row_means), kept=kept)


@reference(
    "reinforce_rej",
    "arXiv:2504.11343, eq. 5 with rewards of -1 and 1, from memory of the paper;"
    " RLHFlow/Minimal-RL, verl/trainer/ppo/core_algos.py",
    reward="binary",
)
def reinforce_rej(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    return Update(2 * case.reward[kept] - 1, clipped_row_mean(), minibatches=4, kept=kept)


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
    return Update(risk / std / std, clipped_row_mean(), minibatches=2)


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
    return Update(advantage, clipped_token_mean(0.2, 0.27), minibatches=4, kept=kept)


@reference("soft_grpo", "zz1358m/SofT-GRPO-master, SofT-GRPO-deepscaler-8k.sh: GRPO of verl 0.4")
def soft_grpo(case: Case) -> Update:
    advantage = z_score(case.reward, case.group)
    return Update(advantage, with_kl(0.001, mean_of_row_means), minibatches=2)


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
    return Update(advantage, clipped_token_mean(0.2, 0.28), minibatches=8)


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
    return Update(z_score(reward, case.group), with_kl(0.1, token_mean), epochs=2)


@reference("vade", "arXiv:2511.18902: GRPO on the sampled tasks")
def vade(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), clipped_row_mean())


@reference(
    "w_reinforce",
    "TianHongZXY/RLVR-Decomposed, compute_psr_nsr_outcome_advantage ('weighted') of"
    " verl/trainer/ppo/core_algos.py; run_qwen2.5-math-7b_psr_nsr.sh",
    reward="binary",
)
def w_reinforce(case: Case) -> Update:
    return Update(np.where(case.reward == 1, 0.1, -1.0), clipped_token_mean(), minibatches=4)


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
    return Update(z + np.where(z > 0, bonus, 0), clipped_row_mean())
