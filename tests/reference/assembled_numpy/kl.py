"""Methods with another KL divergence, another reference policy, or none."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    clip,
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    mean_of_row_sums,
    row_sum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


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


@reference("grpo_released", "verl: compute_grpo_outcome_advantage, compute_policy_loss, low_var_kl")
def grpo_released(case: Case) -> Update:
    return Update(
        z_score(case.reward, case.group), ppo_loss(token_mean, kl_coef=0.001), minibatches=4
    )


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
    loss = ppo_loss(low=0.5, high=0.5, kl_coef=0.001)
    return Update(z_score(case.reward, case.group), loss, minibatches=16)


@reference(
    "prorl", "arXiv:2505.24864 from memory: DAPO's clip and filter, GRPO's KL", reward="binary"
)
def prorl(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    loss = ppo_loss(token_mean, high=0.4, kl_coef=1e-4)
    advantage = z_score(case.reward[kept], case.group[kept])
    return Update(advantage, loss, minibatches=4, kept=kept)


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
    kl = row_sum(case.old_logp - case.signals["logp@ref"], case.mask)
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
    kl = row_sum(case.old_logp - case.signals["logp@ref"], case.mask)

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

    loss = ppo_loss(token_mean)
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
        w = np.exp(row_sum(pi["logp"] - batch.old_logp, batch.mask))
        w = clip(stop_gradient(w), 0.8, 1.2)
        policy = row_sum(pi["logp"], batch.mask) / n
        ref = row_sum(batch.signals["logp@ref"], batch.mask) / n
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
    kl = row_sum(case.old_logp - case.signals["logp@ref"], case.mask)
    calibrated = 1 / (1 + np.exp(case.terms["baseline"] - case.reward))
    regularized = case.terms["feasible"] * calibrated * np.maximum(1 - kl / 0.1, 0)

    def loss(batch, pi):
        return mean_of_row_sums(-batch.advantage * pi["logp"], batch.mask)

    return Update(regularized - regularized.mean(), loss)
