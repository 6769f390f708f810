"""Methods that weigh groups and tokens by their uncertainty."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    clipped_surrogate,
    group_mean,
    group_std,
    maximum,
    mean_of_row_means,
    mean_of_row_sums,
    minimum,
    row_sum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "canon",
    "biuboomc/CANON: compute_dr_entropy_per_token_group_outcome_advantage, setups.sh",
    code="canon(between_weight=0.7, max_length=8)",
)
def canon(case: Case) -> Update:
    metric = row_sum(case.signals["entropy"], case.mask) / case.lengths
    advantage = np.zeros(len(metric))
    for g in np.unique(case.group):
        rows = np.flatnonzero(case.group == g)
        ordered = rows[np.argsort(metric[rows])]
        halves = ordered[: len(rows) // 2], ordered[len(rows) // 2 :]
        for own, other in (halves, halves[::-1]):
            r = case.reward[own]
            between = r - case.reward[other].mean()
            advantage[own] = 0.7 * between + 0.3 * (r - r.mean())

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.28)
        return mean_of_row_sums(surrogate, batch.mask) / 8

    return Update(advantage, loss, minibatches=16)


def entropy_of_values(x: Array, group: Array) -> Array:
    """Entropy of the values of each rollout's group, in nats (N,)."""

    def entropy(values):
        p = np.unique(values, return_counts=True)[1] / len(values)
        return -(p * np.log(p)).sum()

    return np.array([entropy(x[group == g]) for g in group])


CLUSTERS = (0, 0, 1, 2, 0, 0, 0, 0, -1, -1, 3, 3, 0, 1, -1)


@reference(
    "copo",
    "hijih/copo-code: compute_grpo_outcome_advantage_with_global,"
    " compute_policy_loss_with_global (soft-with-zero), run_copo.sh",
    code="copo(consistency_coef=1.0)",
    reward=(1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0),
    terms={"cluster": CLUSTERS},
)
def copo(case: Case) -> Update:
    bits = entropy_of_values(case.terms["cluster"], case.group) / np.log(2)
    size = np.array([(case.group == g).sum() for g in case.group])
    shaped = group_mean(case.reward, case.group) * (1 - (1 - 1 / size) / np.log2(size) * bits)
    first = np.unique(case.group, return_index=True)[1]
    of_group = dict(zip(case.group[first], shaped[first], strict=True))
    values = np.array([*of_group.values()])
    weight = 1 / (1 + np.exp(-5 * (bits - 1)))
    weight_of_group = dict(zip(case.group[first], weight[first], strict=True))

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        of_all = (np.array([of_group[g] for g in batch.group]) - values.mean()) / (
            values.std(ddof=1) + 1e-6
        )
        own = z_score(batch.reward, batch.group)
        w = np.array([weight_of_group[g] for g in batch.group]) * (batch.reward != 0)
        local_loss = clipped_surrogate(ratio, own[:, None], 0.2, 0.2)
        global_loss = clipped_surrogate(ratio, of_all[:, None], 0.2, 0.2)
        mixed = w[:, None] * local_loss + (1 - w)[:, None] * global_loss
        return mean_of_row_means(mixed, batch.mask)

    return Update(None, loss, minibatches=16)


@reference(
    "seed_grpo",
    "arXiv:2505.12346 as themoonlight.io reviews it: A = r - mean, times f(alpha SE / SE_max)",
    terms={"cluster": CLUSTERS},
)
def seed_grpo(case: Case) -> Update:
    size = np.array([(case.group == g).sum() for g in case.group])
    share = entropy_of_values(case.terms["cluster"], case.group) / np.log(size)
    centred = case.reward - group_mean(case.reward, case.group)

    loss = ppo_loss()
    return Update(centred * (1 - 0.5 * share), loss)


@reference(
    "qae",
    "arXiv:2509.22611, eq. 4, with DAPO's loss, filter and average",
    reward=(1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 0),
    ratio_spread=1.0,
)
def qae(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    reward, group = case.reward[kept], case.group[kept]

    def quantile(values):
        ordered = np.sort(values)
        return ordered[np.arange(1, len(ordered) + 1) / len(ordered) >= 0.4][0]

    baseline = np.array([quantile(reward[group == g]) for g in group])

    loss = ppo_loss(token_mean, 0.2, 0.28)
    advantage = (reward - baseline) / (group_std(reward, group) + 1e-6)
    return Update(advantage, loss, minibatches=16, kept=kept)


@reference(
    "confucius3_math",
    "Confucius3-Math.pdf, sections 6.1 and 6.2, eq. 1 to 3",
    reward="binary",
)
def confucius3_math(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    score = 2 * case.reward[kept] - 1
    mean = group_mean(score, case.group[kept])
    hardness = -0.256 * mean + 1.256

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.28)
        distance = token_mean(pi["entropy"], batch.mask) - 0.55
        return token_mean(surrogate, batch.mask) + 0.001 * maximum(distance, -distance)

    return Update((score - mean) * hardness, loss, kept=kept)


@reference(
    "aspo_ratio",
    "wizard-III/Archer2.0, core_algos.py: compute_policy_loss_archer; dapo/dapo_ray_trainer.py and"
    " run_archer2.0_qwen2.5_1.5b_math.sh: rejection_sample drops groups of equal rewards",
    ratio_spread=2.0,
    reward="binary",
    value_differs="the release changes the form of the value where the weight is capped",
)
def aspo_ratio(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0

    def loss(batch, pi):
        a = batch.advantage
        ratio = stop_gradient(np.exp(pi["logp"] - batch.old_logp))
        weight = np.where(a > 0, minimum(1 / ratio, 3.0), minimum(ratio, 3.0))
        stopped = ((a > 0) & (ratio > 1.2)) | ((a < 0) & (ratio < 0.8))
        return token_mean(-a * np.where(stopped, 0, weight) * pi["logp"], batch.mask)

    advantage = z_score(case.reward[kept], case.group[kept])
    return Update(advantage, loss, epochs=3, minibatches=4, kept=kept)


@reference(
    "ce_gppo",
    "Kwai-Klear/CE-GPPO, core_algos.py: compute_gppo_loss_general_beta",
    value_differs="the value of a preserved gradient's surrogate is a convention",
)
def ce_gppo(case: Case) -> Update:
    def loss(batch, pi):
        a = batch.advantage
        ratio = np.exp(pi["logp"] - batch.old_logp)
        one = ratio / stop_gradient(ratio)
        below = (np.real(ratio) < 0.8) & (a < 0)
        above = (np.real(ratio) > 1.2) & (a > 0)
        kept = np.where(below, 0.75 * 0.8 * one, np.where(above, 1.2 * one, ratio))
        return token_mean(-a * kept, batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=8)


@reference(
    "ppl_position",
    "RUCAIBox/Slow_Thinking_with_LLMs, entropy2performance: calculate_ppl and compute_policy_loss"
    " of core_algos.py; scripts/low_ppl.sh, location.sh. The weight multiplies, as the record says",
    code="ppl_position(perplexity_coef=0.15, position_coef=0.6)",
    groups=(6, 5, 4),
    lengths=(7, 4, 1, 6, 5, 7, 1, 4, 6, 7, 7, 5, 4, 7, 5),
)
def ppl_position(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    case = case.select(kept)
    a = z_score(case.reward, case.group)[:, None]
    position = (np.cumsum(case.mask, 1) - 1) / case.lengths[:, None]
    bonus = np.minimum(0.6 / (1 + np.exp(-15 * (position - 0.5))), 0.5 * np.abs(a))
    log_perplexity = -(case.old_logp * case.mask).sum(1) / case.lengths
    score = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        x = log_perplexity[case.group == g]
        q1, q3 = np.quantile(x, 0.25), np.quantile(x, 0.75)
        usual = x[(x >= q1 - 1.5 * (q3 - q1)) & (x <= q3 + 1.5 * (q3 - q1))]
        std = usual.std() if usual.std() > 1e-6 else 1.0
        score[case.group == g] = (x - usual.mean()) / std
    weight = np.clip(1 - 0.15 * score, 0.8, 1.2)[:, None]
    loss = ppo_loss(token_mean, 0.2, 0.28)
    return Update((a + np.sign(a) * bonus) * weight, loss, minibatches=16, kept=kept)
