"""Methods with budgets of tokens, and with weights by length in the average."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    Array,
    clip,
    clipped_surrogate,
    group_mean,
    group_std,
    mean_of_row_means,
    minimum,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


def sequence_log_ratio(batch: Case, pi) -> Array:
    """The sum of the log-ratios of each row (n,)."""
    return ((pi["logp"] - batch.old_logp) * batch.mask).sum(1)


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
        surrogate = ppo_loss(token_mean, 0.2, 0.28)(batch, pi)
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

    return Update(case.reward - group_mean(case.reward, case.group), ppo_loss(mean), minibatches=8)


@reference(
    "elastic_reasoning",
    "SalesforceAIResearch/Elastic-Reasoning, scripts/e1-math/e1_math_1.5b_1k_1k.sh",
)
def elastic_reasoning(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo_loss(kl_coef=0.001), minibatches=2)


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
    loss = ppo_loss(token_mean, 0.2, 0.28)
    return Update(intra + z_score(reward, case.group), loss, minibatches=4)


BUDGETS = (4, 4, 4, 4, 3, 3, 3, 3, 5, 5, 5, 5, 2, 2, 2)


@reference(
    "l1_exact",
    "cmu-l3/l1, get_delta_score_linear of math_reward.py and run_l1_exact.sh",
    code="l1_exact(length_coef=0.1)",
    terms={"budget": BUDGETS},
)
def l1_exact(case: Case) -> Update:
    reward = case.reward - 0.1 * np.abs(case.terms["budget"] - case.lengths)
    return Update(z_score(reward, case.group), ppo_loss(), minibatches=2)


@reference(
    "l1_max",
    "arXiv:2503.04697, reward of L1-Max; cmu-l3/l1, scripts/train/run_l1_max.sh",
    code="l1_max(length_coef=0.3)",
    terms={"budget": BUDGETS},
)
def l1_max(case: Case) -> Update:
    share = np.clip(0.3 * (case.terms["budget"] - case.lengths) + 0.5, 0, 1)
    return Update(z_score(case.reward * share, case.group), ppo_loss(), minibatches=2)


@reference(
    "l_grpo",
    "arXiv:2505.21178, abstract; the bonus 1 - L / max_length from memory of the paper",
    code="l_grpo(max_length=8)",
    terms={"correct": (1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1)},
)
def l_grpo(case: Case) -> Update:
    solved = group_mean(case.terms["correct"], case.group) == 1
    reward = case.reward + np.where(solved, 1 - case.lengths / 8, 0.0)
    return Update(z_score(reward, case.group), ppo_loss(token_mean, 0.2, 0.28))


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
    return Update(reward - group_mean(reward, case.group), ppo_loss())
