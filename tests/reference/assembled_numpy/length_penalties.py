"""Methods that shorten answers by a penalty or a bonus."""

import numpy as np

from tests.reference.assembled_numpy.case import WIDTH, Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    group_mean,
    maximum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference

# every group has correct and wrong answers of several lengths, but group 2, which is all correct
CORRECT = (1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0)


def correct_length_stats(case: Case, correct: Array, ddof: int = 1) -> tuple[Array, Array]:
    """Mean and standard deviation of the lengths of each group's correct answers (N,)."""
    mean, std = np.zeros(len(case.group)), np.zeros(len(case.group))
    for g in np.unique(case.group):
        lengths = case.lengths[(case.group == g) & correct]
        mean[case.group == g] = lengths.mean() if len(lengths) else 0.0
        std[case.group == g] = lengths.std(ddof=ddof) if len(lengths) > ddof else 0.0
    return mean, std


@reference(
    "adora",
    "ShadeCloak/ADORA, compute_grpo_outcome_advantage_ADORA of core_algos.py and ADORA.sh",
    code="adora(max_length=6)",
    reward=(0.6, 0.9, 0.8, 0.2, 0.3, 0.9, 0, 0.8, 0.1, 0.4, 0.2, 0.7, 0.3, 0.4, 0.5),
    terms={"correct": (1, 0, 0, 0, 0.5, 0, 1, 0, 0, 0, 0, 0, 1, 0.6, 1)},
)
def adora(case: Case) -> Update:
    weight = np.full(len(case.group), 0.1)
    for g in np.unique(case.group):
        rows = case.group == g
        right = rows & (case.terms["correct"] > 0.5)
        wrong = rows & ~(case.terms["correct"] > 0.5) & (case.lengths < 6)
        if right.any() and (
            not wrong.any() or case.lengths[right].max() > case.lengths[wrong].mean()
        ):
            weight[rows] = 1.0
    advantage = weight * z_score(case.reward, case.group)
    return Update(advantage, ppo_loss(kl_coef=0.001), minibatches=2)


@reference(
    "alp",
    "arXiv:2506.05256, reward as quoted by themoonlight.io",
    code="alp(length_coef=0.05)",
    terms={"correct": (1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0)},
)
def alp(case: Case) -> Update:
    size = np.array([(case.group == g).sum() for g in case.group])
    solved = np.maximum(group_mean(case.terms["correct"], case.group), 1 / size)
    return Update(z_score(case.reward - 0.05 * solved * case.lengths, case.group), ppo_loss())


@reference(
    "cosine_length",
    "arXiv:2502.03373; eddycmu/demystify-long-cot, reward/cosine.py, reward/repetition.py and"
    " the script of section 4.5",
    code="cosine_length(max_length=22)",
    terms={"correct": CORRECT},
    signals={"step/repeated": np.arange(15 * WIDTH).reshape(15, WIDTH) % 5 % 2},
)
def cosine_length(case: Case) -> Update:
    """An answer within MAX_LEN_MARGIN = 16 tokens of the limit exceeds it."""

    def half_cosine(at_zero, at_limit):
        return at_limit + 0.5 * (at_zero - at_limit) * (1 + np.cos(np.pi * case.lengths / 22))

    reward = np.where(case.terms["correct"] == 1, half_cosine(2, 1), half_cosine(-10, 0))
    reward = np.where(case.lengths + 16 >= 22, -10, reward)
    penalty = -0.05 * case.signals["step/repeated"] * case.mask
    returns, following = np.zeros(penalty.shape), np.zeros(len(penalty))
    for t in reversed(range(WIDTH)):
        following = penalty[:, t] + 0.99 * following
        returns[:, t] = following
    advantage = z_score(reward, case.group)[:, None] + returns
    return Update(advantage, ppo_loss(), epochs=2, minibatches=16)


@reference(
    "drpo",
    "Optimization-AI/DRPO, compute_policy_loss_drpo of core_algos.py, run_drpo_1.5b_8k.sh",
    code="drpo(max_length=8)",
    lengths=(5, 7, 4, 2, 6, 5, 7, 2, 4, 6, 2, 7, 5, 4, 7),
    reward=(1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1),
    value_differs="the release detaches a factor of the penalty on the KL divergence",
)
def drpo(case: Case) -> Update:
    """The estimated KL divergence is positive in some minibatches and negative in others."""

    def loss(batch, pi):
        score = (pi["logp"] * batch.mask).sum(1) / batch.lengths
        weight = np.exp((1 - batch.lengths / 8) / 0.1)
        objective = 0.0
        groups = np.unique(batch.group)
        for g in groups:
            right = (batch.group == g) & (batch.reward == 1)
            wrong = (batch.group == g) & (batch.reward == 0)
            if right.any() and wrong.any():
                positive = (weight * score)[right].sum() / weight[right].sum()
                negative = 10 * np.log(np.mean(np.exp(score[wrong] / 10)))
                objective = objective + positive - negative
        kl = token_mean(batch.old_logp - pi["logp"], batch.mask)
        constraint = stop_gradient(maximum(1000 * (kl - 1e-4), 0)) * kl
        return -objective / len(groups) + constraint

    return Update(None, loss, minibatches=4)


@reference(
    "format_length",
    "arXiv:2505.19439, eq. 2 and 5; insightLLM/rl-without-gt, length_reward_func_v3 of"
    " math_reward.py and run_grpo_math_7b.sh",
    code="format_length(max_length=6, peak_fraction=0.4)",
    terms={"format": (1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1)},
)
def format_length(case: Case) -> Update:
    x = case.lengths / 6
    length = np.where(x <= 0.4, 1 - (1 - x / 0.4) ** 2, 1 - 2 * ((x - 0.4) / 0.6) ** 2)
    form = case.terms["format"]
    reward = np.where(form == 1, form + length, np.minimum(0, form + length))
    return Update(z_score(reward, case.group), ppo_loss(kl_coef=0.001))


@reference(
    "gfpo",
    "arXiv:2508.09726, eq. 2, algorithm 1 and section 4",
    code="gfpo(group_size=4, num_kept=2)",
)
def gfpo(case: Case) -> Update:
    kept = np.zeros(len(case.group), bool)
    for g in np.unique(case.group):
        rows = np.flatnonzero(case.group == g)
        kept[rows[np.argsort(case.lengths[rows], kind="stable")[:2]]] = True

    def loss(batch, pi):
        surrogate = ppo_loss(token_mean, kl_coef=0.001)(batch, pi)
        return surrogate - 0.001 * token_mean(pi["entropy"], batch.mask)

    advantage = z_score(case.reward[kept], case.group[kept], ddof=0)  # sigma_S of eq. 2
    return Update(advantage, loss, kept=kept)


@reference(
    "grpo_lambda_length_reward",
    "arXiv:2505.18086, formulas in jianzhnie/llmtech, docs/rlhf/paper/GRPO-lambda.md",
    code="grpo_lambda_length_reward(top_group_fraction=0.3)",
    terms={"correct": (1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0)},
)
def grpo_lambda_length_reward(case: Case) -> Update:
    """Two of four groups are in the top fraction, which is rounded up."""
    correct = case.terms["correct"] == 1
    mean, std = correct_length_stats(case, correct, ddof=0)  # np.std of the page's code
    accuracy = [correct[case.group == g].mean() for g in np.unique(case.group)]
    count = int(np.ceil(0.3 * len(accuracy)))
    top = np.argsort(-np.array(accuracy), kind="stable")[:count]
    z = (case.lengths - mean) / np.where(std > 0, std, 1.0)
    brief = np.where(correct, 1 - 0.2 / (1 + np.exp(-np.where(correct, z, 0.0))), 0.0)
    reward = np.where(np.isin(case.group, top), brief, correct * 1.0)
    return Update(z_score(reward, case.group), ppo_loss())


@reference(
    "grpo_lead",
    "aeroplanepaper/GRPO-LEAD, get_reweight_rewards of main_ppo.py, logistic_reweight and"
    " compute_grpo_outcome_advantage of core_algos.py, ds_14b_stage1.sh",
    code="grpo_lead(length_coef=0.5)",
    reward=(1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1),
)
def grpo_lead(case: Case) -> Update:
    correct = case.reward > 0
    mean, std = correct_length_stats(case, correct)
    alone = np.array([correct[case.group == g].sum() == 1 for g in case.group])
    z = (case.lengths - mean) / (np.where(alone, 1.0, std) + 1e-6)
    reward = np.where(correct, case.reward * np.exp(-0.5 * z), -1.0)
    advantage = z_score(reward, case.group)
    solved = group_mean(correct * 1.0, case.group)
    rate = np.where(advantage > 0, solved, 1 - solved)
    weight = 0.4 + (1.5 - 0.4) / (1 + np.exp(10 * (rate - 0.75)))
    return Update(weight * advantage, ppo_loss(token_mean))


@reference(
    "kimi_length",
    "arXiv:2501.12599, section 2.3.3",
    terms={"correct": CORRECT},
    lengths=(7, 4, 2, 6, 5, 7, 2, 4, 6, 2, 7, 5, 5, 5, 5),
)
def kimi_length(case: Case) -> Update:
    bonus = kimi_bonus(case, case.terms["correct"] == 1)
    return Update(z_score(case.reward + bonus, case.group), ppo_loss())


def kimi_bonus(case: Case, correct: Array) -> Array:
    """lambda = 1/2 - (len - min) / (max - min), at most 0 if incorrect; 0 if all are equal."""
    bonus = np.zeros(len(case.group))
    for g in np.unique(case.group):
        rows = case.group == g
        low, high = case.lengths[rows].min(), case.lengths[rows].max()
        if high > low:
            bonus[rows] = 0.5 - (case.lengths[rows] - low) / (high - low)
    return np.where(correct, bonus, np.minimum(0, bonus))


@reference(
    "rlsp",
    "GuanghaoYe/Emergence-of-Thinking, _compute_single_reward of orm_server_efficient.py and"
    " train_ppo_llama_ray_8B_rm_multi.sh",
    code="rlsp(short_penalty=2.0)",
    terms={"effort": "real"},
)
def rlsp(case: Case) -> Update:
    reward = 0.8 * (case.reward - 2.0 / case.lengths) + 0.2 * case.terms["effort"]
    return Update(z_score(reward, case.group), ppo_loss(kl_coef=0.05), minibatches=4)
