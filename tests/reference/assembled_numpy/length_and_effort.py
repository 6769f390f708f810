"""Methods that reward or weight answers by their length."""

import numpy as np

from tests.reference.assembled_numpy.case import WIDTH, Case
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
from tests.reference.assembled_numpy.update import Loss, Update, reference

Array = np.ndarray

# every group has correct and wrong answers of several lengths, but group 2, which is all correct
CORRECT = (1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0)


def ppo(low: float = 0.2, high: float = 0.2, kl_coef: float = 0.0, mean=mean_of_row_means) -> Loss:
    """The clipped surrogate, with the KL divergence from the reference policy."""

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        per_action = clipped_surrogate(ratio, batch.advantage, low, high)
        if kl_coef:
            per_action = per_action + kl_coef * k3(pi["logp"], batch.signals["logp@ref"])
        return mean(per_action, batch.mask)

    return loss


def sequence_log_ratio(batch: Case, pi) -> Array:
    """The sum of the log-ratios of each row (n,)."""
    return ((pi["logp"] - batch.old_logp) * batch.mask).sum(1)


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
    return Update(advantage, ppo(kl_coef=0.001), minibatches=2)


@reference(
    "alp",
    "arXiv:2506.05256, reward as quoted by themoonlight.io",
    code="alp(length_coef=0.05)",
    terms={"correct": (1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0)},
)
def alp(case: Case) -> Update:
    size = np.array([(case.group == g).sum() for g in case.group])
    solved = np.maximum(group_mean(case.terms["correct"], case.group), 1 / size)
    return Update(z_score(case.reward - 0.05 * solved * case.lengths, case.group), ppo())


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
    return Update(advantage, ppo(), epochs=2, minibatches=16)


@reference(
    "delethink",
    "McGill-NLP/the-markovian-thinker, compute_policy_loss_vanill_no_aggr and"
    " agg_loss_with_trace_lengths of core_algos.py, r1d-1.5b_deepscaler_delethink_24k.yaml",
    ratio_spread=1.6,
)
def delethink(case: Case) -> Update:
    """A row is a whole trace here."""

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.26)
        dual = minimum(surrogate, -3.0 * batch.advantage)
        surrogate = np.where(batch.advantage < 0, dual, surrogate)
        weight = np.minimum(np.exp(batch.old_logp - batch.signals["logp@sampler"]), 2.0)
        return mean_of_row_means(weight * surrogate, batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=2)


@reference(
    "dler",
    "arXiv:2510.15110, eq. 3, sections 3.1 to 3.4 and table 4",
    code="dler(max_length=5)",
    reward=(1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1),
    lengths=(7, 4, 2, 6, 7, 7, 7, 4, 6, 2, 4, 5, 4, 7, 5),
)
def dler(case: Case) -> Update:
    reward = np.where(case.lengths <= 5, case.reward, 0.0)
    kept = group_std(reward, case.group) > 0
    reward, group, mask = reward[kept], case.group[kept], case.mask[kept]
    centered = reward - group_mean(reward, group)
    actions = np.repeat(centered, mask.sum(1))  # A of eq. 3 has an index for the token
    advantage = (centered - actions.mean()) / np.sqrt(actions.var(ddof=1) + 1e-8)

    def loss(batch, pi):
        squared = (pi["logp"] - batch.signals["logp@ref"]) ** 2 / 2  # kl_loss_type: mse
        surrogate = ppo(0.2, 0.28, mean=token_mean)(batch, pi)
        return surrogate + 0.0005 * token_mean(squared, batch.mask)

    return Update(advantage, loss, minibatches=8, kept=kept)


@reference(
    "dr_grpo",
    "arXiv:2503.20783, section 3.2 and listing 1",
    code="dr_grpo(max_length=6)",
)
def dr_grpo(case: Case) -> Update:
    def mean(per_action, mask):
        return np.mean((per_action * mask).sum(1) / 6)

    return Update(case.reward - group_mean(case.reward, case.group), ppo(mean=mean), minibatches=8)


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
    "elastic_reasoning",
    "SalesforceAIResearch/Elastic-Reasoning, scripts/e1-math/e1_math_1.5b_1k_1k.sh",
)
def elastic_reasoning(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo(kl_coef=0.001), minibatches=2)


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
    return Update(z_score(reward, case.group), ppo(kl_coef=0.001))


@reference(
    "fspo",
    "arXiv:2509.09177, abstract of version 2; a public implementation that cites eq. 3 to 5"
    " (compute_gspo_loss with gspo_clip_len_scaling='sqrt')",
    ratio_spread=0.3,
)
def fspo(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = sequence_log_ratio(batch, pi)
        band = 0.03 * np.sqrt(batch.lengths)
        advantage = batch.advantage[:, 0]
        clipped = np.exp(clip(log_ratio, -band, band))
        return -np.mean(minimum(np.exp(log_ratio) * advantage, clipped * advantage))

    return Update(z_score(case.reward, case.group), loss)


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
        surrogate = ppo(kl_coef=0.001, mean=token_mean)(batch, pi)
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
    return Update(z_score(reward, case.group), ppo())


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
    return Update(weight * advantage, ppo(mean=token_mean))


@reference(
    "hbpo",
    "ZJU-REAL/HBPO, paper.txt (equations of section 3), ppo_trainer.yaml and"
    " run_qwen2-7b_deepscale.sh",
    code="hbpo(group_size=4, max_length=5, budgets=(2, 4), length_coef=0.1)",
    terms={
        "budget": (2, 2, 4, 4, 2, 2, 4, 4, 2, 2, 4, 4, 2, 4, 4),
        "correct": (1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0),
    },
)
def hbpo(case: Case) -> Update:
    budget, n = case.terms["budget"], case.lengths
    at_budget = 4 * np.cos(np.pi * budget / (2 * 5))
    beyond = 4 * np.cos(np.pi * n / (2 * 5)) - 0.1 * np.abs(n - budget)
    paid = (case.terms["correct"] == 1) & (n <= 5)
    reward = np.where(paid, np.where(n > budget, beyond, at_budget), 0.0)
    part = case.group * 10 + budget
    intra = group_mean(reward, part) - at_budget
    loss = ppo(0.2, 0.28, mean=token_mean)
    return Update(intra + z_score(reward, case.group), loss, minibatches=4)


@reference(
    "kimi_length",
    "arXiv:2501.12599, section 2.3.3",
    terms={"correct": CORRECT},
    lengths=(7, 4, 2, 6, 5, 7, 2, 4, 6, 2, 7, 5, 5, 5, 5),
)
def kimi_length(case: Case) -> Update:
    bonus = kimi_bonus(case, case.terms["correct"] == 1)
    return Update(z_score(case.reward + bonus, case.group), ppo())


def kimi_bonus(case: Case, correct: Array) -> Array:
    """lambda = 1/2 - (len - min) / (max - min), at most 0 if incorrect; 0 if all are equal."""
    bonus = np.zeros(len(case.group))
    for g in np.unique(case.group):
        rows = case.group == g
        low, high = case.lengths[rows].min(), case.lengths[rows].max()
        if high > low:
            bonus[rows] = 0.5 - (case.lengths[rows] - low) / (high - low)
    return np.where(correct, bonus, np.minimum(0, bonus))


BUDGETS = (4, 4, 4, 4, 3, 3, 3, 3, 5, 5, 5, 5, 2, 2, 2)


@reference(
    "l1_exact",
    "cmu-l3/l1, get_delta_score_linear of math_reward.py and run_l1_exact.sh",
    code="l1_exact(length_coef=0.1)",
    terms={"budget": BUDGETS},
)
def l1_exact(case: Case) -> Update:
    reward = case.reward - 0.1 * np.abs(case.terms["budget"] - case.lengths)
    return Update(z_score(reward, case.group), ppo(), minibatches=2)


@reference(
    "l1_max",
    "arXiv:2503.04697, reward of L1-Max; cmu-l3/l1, scripts/train/run_l1_max.sh",
    code="l1_max(length_coef=0.3)",
    terms={"budget": BUDGETS},
)
def l1_max(case: Case) -> Update:
    share = np.clip(0.3 * (case.terms["budget"] - case.lengths) + 0.5, 0, 1)
    return Update(z_score(case.reward * share, case.group), ppo(), minibatches=2)


@reference(
    "l_grpo",
    "arXiv:2505.21178, abstract; the bonus 1 - L / max_length from memory of the paper",
    code="l_grpo(max_length=8)",
    terms={"correct": (1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1)},
)
def l_grpo(case: Case) -> Update:
    solved = group_mean(case.terms["correct"], case.group) == 1
    reward = case.reward + np.where(solved, 1 - case.lengths / 8, 0.0)
    return Update(z_score(reward, case.group), ppo(0.2, 0.28, mean=token_mean))


@reference(
    "lambda_grpo_length",
    "Wodlfvllf/grpo-composer, core/aggregation/group_learnable.py",
)
def lambda_grpo_length(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2) * batch.mask
        exponent = (pi["lambda"] * batch.mask).sum(1) / batch.lengths  # one number in the source
        h = 1 + z_score(batch.lengths * 1.0, batch.group, ddof=0, eps=1e-8) / 9
        weights = [
            np.exp(h[i] ** exponent[i]) / np.exp(h[batch.group == g] ** exponent[i]).mean()
            for i, g in enumerate(batch.group)
        ]
        return (np.array(weights)[:, None] * surrogate).sum() / batch.mask.sum()

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "luspo",
    "arXiv:2602.05261; TRL, loss_type='luspo' of grpo_trainer.py",
    ratio_spread=0.05,
)
def luspo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(sequence_log_ratio(batch, pi) / batch.lengths)
        surrogate = clipped_surrogate(ratio, batch.advantage[:, 0], 0.002, 0.0025)
        return np.mean(surrogate * batch.lengths)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "opo",
    "verl, docs/algo/opo.md and compute_opo_outcome_advantage",
    groups=(4, 4, 4, 2, 1),
)
def opo(case: Case) -> Update:
    lengths = case.lengths * 1.0
    weighted = group_mean(case.reward * lengths, case.group)
    advantage = case.reward - weighted / group_mean(lengths, case.group)

    def loss(batch, pi):
        return -np.mean((pi["logp"] * batch.advantage * batch.mask).sum(1))

    return Update(advantage, loss)


@reference(
    "rlsp",
    "GuanghaoYe/Emergence-of-Thinking, _compute_single_reward of orm_server_efficient.py and"
    " train_ppo_llama_ray_8B_rm_multi.sh",
    code="rlsp(short_penalty=2.0)",
    terms={"effort": "real"},
)
def rlsp(case: Case) -> Update:
    reward = 0.8 * (case.reward - 2.0 / case.lengths) + 0.2 * case.terms["effort"]
    return Update(z_score(reward, case.group), ppo(kl_coef=0.05), minibatches=4)


@reference(
    "s_grpo",
    "arXiv:2505.07686, reward 1 / 2^(n - 1) as quoted by notes; its advantage from memory",
    reward=(1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1),
    terms={"exit_index": (2, 0, 1, 3, 0, 1, 2, 3, 3, 2, 1, 0, 1, 0, 2)},
)
def s_grpo(case: Case) -> Update:
    exits, correct = case.terms["exit_index"], case.reward > 0
    earlier = np.array(
        [
            (correct & (case.group == g) & (exits < exit_)).sum()
            for g, exit_ in zip(case.group, exits, strict=True)
        ]
    )
    reward = np.where(correct, 0.5**earlier, 0.0)
    return Update(reward - group_mean(reward, case.group), ppo())
