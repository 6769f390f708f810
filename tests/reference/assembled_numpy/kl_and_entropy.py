"""Methods with a KL divergence from a reference policy, and methods with other baselines."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clip,
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    maximum,
    mean_of_row_means,
    minimum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.update import Update, reference

Array = np.ndarray


def sum_over_actions(x: Array, mask: Array) -> Array:
    """The sum over the actions of each row (N,)."""
    return (x * mask).sum(1)


def mean_of_row_sums(x: Array, mask: Array) -> complex:
    """The mean over rows of each row's sum."""
    return np.mean(sum_over_actions(x, mask))


def mean_of_others(x: Array, group: Array) -> Array:
    """The mean over the other rollouts of the group (N,); the value itself if there are none."""
    n = np.array([(group == g).sum() for g in group])
    total = group_mean(x, group) * n
    return np.where(n > 1, (total - x) / np.maximum(n - 1, 1), x)


def whiten_tokens(x: Array, mask: Array) -> Array:
    """(x - mean) / sqrt(variance + 1e-8) over all actions of the batch."""
    values = x[mask]
    return (x - values.mean()) / np.sqrt(values.var(ddof=1) + 1e-8) * mask


def k2(logp: Array, ref_logp: Array) -> Array:
    """(log pi - log ref)^2 / 2."""
    return (logp - ref_logp) ** 2 / 2


def grpo_with_kl(
    case: Case,
    *,
    low: float = 0.2,
    high: float = 0.2,
    kl_coef: float,
    kl=k3,
    average=mean_of_row_means,
    minibatches: int = 1,
) -> Update:
    """GRPO's update with another KL estimator, average or plan."""

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, low, high)
        return average(surrogate + kl_coef * kl(pi["logp"], batch.signals["logp@ref"]), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=minibatches)


@reference("grpo_released", "verl: compute_grpo_outcome_advantage, compute_policy_loss, low_var_kl")
def grpo_released(case: Case) -> Update:
    return grpo_with_kl(case, kl_coef=0.001, average=token_mean, minibatches=4)


def reinforce_with_kl(advantage: Array, kl_coef: float, kl, average) -> Update:
    """One update on fresh samples: -A log pi, whose gradient is that of the ratio at 1."""

    def loss(batch, pi):
        penalty = kl_coef * kl(pi["logp"], batch.signals["logp@ref"])
        return average(-batch.advantage * pi["logp"] + penalty, batch.mask)

    return Update(advantage, loss)


@reference(
    "grpo_d", "brief: GRPO without a clip, one update per step; b grows linearly from 0 to 0.04"
)
def grpo_d(case: Case) -> Update:
    advantage = z_score(case.reward, case.group)
    return reinforce_with_kl(advantage, 0.5 * 0.04, k3, mean_of_row_means)


@reference(
    "k2_kl",
    "arXiv:2510.01555, abstract: k2 as loss; baseline and average are no part of the abstract",
)
def k2_kl(case: Case) -> Update:
    advantage = case.reward - group_mean(case.reward, case.group)
    return reinforce_with_kl(advantage, 0.04, k2, token_mean)


@reference(
    "deepseek_r1",
    "arXiv:2501.12948, eq. of section 2 and B.3.2; a clip of 10 would not act here",
    code="deepseek_r1(clip_eps=0.5)",
    ratio_spread=1.2,
)
def deepseek_r1(case: Case) -> Update:
    return grpo_with_kl(case, low=0.5, high=0.5, kl_coef=0.001, minibatches=16)


@reference(
    "prorl", "arXiv:2505.24864 from memory: DAPO's clip and filter, GRPO's KL", reward="binary"
)
def prorl(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    update = grpo_with_kl(
        case.select(kept), high=0.4, kl_coef=1e-4, average=token_mean, minibatches=4
    )
    return Update(update.advantage, update.loss, minibatches=4, kept=kept)


@reference(
    "ema_pg", "LunjunZhang/ema-pg, train_deepscaler_8k_ema_pg.sh: seq-mean-token-mean, clip 0.28"
)
def ema_pg(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.28)
        return mean_of_row_means(surrogate + 0.001 * pi["reverse_kl@ref"], batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=2)


@reference("rloo", "arXiv:2402.14740, eq. 2, 3 and 9 from memory: REINFORCE on whole answers")
def rloo(case: Case) -> Update:
    kl = sum_over_actions(case.old_logp - case.signals["logp@ref"], case.mask)
    total = case.reward - 0.03 * kl

    def loss(batch, pi):
        return mean_of_row_sums(-batch.advantage * pi["logp"], batch.mask)

    return Update(total - mean_of_others(total, case.group), loss, minibatches=2)


@reference(
    "kl_in_reward",
    "openai/lm-human-preferences, train_policy.py: compute_rewards and the policy loss;"
    " brief: the group is the baseline",
)
def kl_in_reward(case: Case) -> Update:
    kl = sum_over_actions(case.old_logp - case.signals["logp@ref"], case.mask)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        # the source's answers have one length, so that all averages are equal
        return mean_of_row_means(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), batch.mask)

    return Update(z_score(case.reward - 0.1 * kl, case.group), loss, epochs=4)


@reference(
    "reinforce_pp",
    "OpenRLHF: compute_reward, get_cumulative_returns (gamma 1), PolicyLoss,"
    " train_reinforce_llama_ray.sh",
)
def reinforce_pp(case: Case) -> Update:
    price = -0.01 * (case.old_logp - case.signals["logp@ref"]) * case.mask
    to_go = price[:, ::-1].cumsum(1)[:, ::-1]
    returns = case.reward[:, None] + to_go

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), batch.mask)

    return Update(whiten_tokens(returns, case.mask), loss, minibatches=8)


@reference(
    "reinforce_pp_baseline",
    "OpenRLHF: experience_maker.py, train_reinforce_baseline_hybrid_engine.sh (k2 as loss)",
)
def reinforce_pp_baseline(case: Case) -> Update:
    centred = (case.reward - group_mean(case.reward, case.group))[:, None] * case.mask

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        return token_mean(surrogate + 0.01 * k2(pi["logp"], batch.signals["logp@ref"]), batch.mask)

    return Update(whiten_tokens(centred, case.mask), loss)


@reference(
    "flowrl",
    "Xuekai-Zhu/FlowRL: README's objective, compute_flowrl_objective in dp_actor.py",
    ratio_spread=0.4,
)
def flowrl(case: Case) -> Update:
    def loss(batch, pi):
        n = batch.lengths
        w = np.exp(sum_over_actions(pi["logp"] - batch.old_logp, batch.mask))
        w = clip(stop_gradient(w), 0.8, 1.2)
        policy = sum_over_actions(pi["logp"], batch.mask) / n
        ref = sum_over_actions(batch.signals["logp@ref"], batch.mask) / n
        log_z = pi["log_partition"][:, 0]
        return np.mean(w * (log_z + policy - 15 * batch.advantage[:, 0] - ref) ** 2)

    return Update(z_score(case.reward, case.group), loss, minibatches=16)


@reference(
    "cgpo_crpg",
    "TRL, trl/trainer/cgpo_trainer.py: crpg_optimization; the paper's eq. 12 averages over answers",
    code="cgpo_crpg(max_kl=0.1)",
    terms={"feasible": "binary", "baseline": "real"},
)
def cgpo_crpg(case: Case) -> Update:
    kl = sum_over_actions(case.old_logp - case.signals["logp@ref"], case.mask)
    calibrated = 1 / (1 + np.exp(case.terms["baseline"] - case.reward))
    regularized = case.terms["feasible"] * calibrated * np.maximum(1 - kl / 0.1, 0)

    def loss(batch, pi):
        return mean_of_row_sums(-batch.advantage * pi["logp"], batch.mask)

    return Update(regularized - regularized.mean(), loss)


@reference(
    "canon",
    "biuboomc/CANON: compute_dr_entropy_per_token_group_outcome_advantage, setups.sh",
    code="canon(between_weight=0.7, max_length=8)",
)
def canon(case: Case) -> Update:
    metric = sum_over_actions(case.signals["entropy"], case.mask) / case.lengths
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

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return mean_of_row_means(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), batch.mask)

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

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.28), batch.mask)

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
