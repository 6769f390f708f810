"""Methods with rewards of steps and tokens."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.critics import actor_critic_loss, gae, outcome
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


def sum_to_go(x, mask):
    """The sum over each action and those after it."""
    return np.cumsum((x * mask)[:, ::-1], axis=1)[:, ::-1]


STEP = np.array([[0, 0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 3, 3, 4], [0, 0, 0, 0, 0, 0, 0]] * 5)


SCORE = np.random.default_rng(0).random((15, 5)).round(2)


@reference(
    "prm_clip_delta",
    "arXiv:2410.15115, section 5, from memory: no reward at the last step",
    code="prm_clip_delta(process_coef=0.5)",
    signals={
        "step/index": STEP.tolist(),
        "step/prm": np.take_along_axis(SCORE, STEP, axis=1).tolist(),
    },
)
def prm_clip_delta(case: Case) -> Update:
    process = np.zeros(case.mask.shape)
    for i in range(len(case.reward)):
        step = np.where(case.mask[i], case.signals["step/index"][i], -1)
        ends = [np.flatnonzero(step == k)[-1] for k in np.unique(step[case.mask[i]])]
        clipped = np.minimum(case.signals["step/prm"][i, ends] - 0.5, 0)
        clipped[-1] = 0
        process[i, ends[:-1]] = clipped[:-1] - clipped[1:]
    reward = outcome(case) + 0.5 * process
    advantage = gae(reward, case.signals["value"], case.mask, 0.95)
    loss = actor_critic_loss(0.2, 0.2, lambda batch: batch.advantage + batch.signals["value"], 1.0)
    return Update(advantage, loss, epochs=3)


@reference(
    "implicit_prm",
    "arXiv:2412.01981, eq. 5, the cross-entropy loss",
    code="implicit_prm(log_ratio_scale=0.5)",
    terms={"correct": "binary"},
)
def implicit_prm(case: Case) -> Update:
    def loss(batch, pi):
        score = 0.5 * ((pi["logp"] - batch.signals["logp@ref"]) * batch.mask).sum(1)
        sign = 2 * batch.terms["correct"] - 1
        return np.mean(np.log(1 + np.exp(-sign * score)))

    return Update(None, loss)


@reference(
    "prime",
    "arXiv:2502.01456, the advantage of both RLOO terms; PRIME-RL/PRIME, core_algos.py"
    " (compute_rloo_returns adds rm_scores and gt_scores unweighted), dp_prime.py (batch_norm);"
    " filter of verl's recipe prime, prime_ray_trainer.py",
    groups=(5, 5, 3, 3),
    reward=(1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1),
)
def prime(case: Case) -> Update:
    accuracy = group_mean(case.reward, case.group)
    kept = (accuracy >= 0.2) & (accuracy <= 0.8)
    case = case.select(kept)
    log_ratio = case.signals["logp@prm"] - case.signals["logp@ref"]
    implicit = log_ratio / (np.abs(sum_to_go(log_ratio, case.mask)).max() + 1e-6)
    row_mean = (implicit * case.mask).sum(1) / case.lengths

    def mean_of_others(x):
        size = np.array([(case.group == g).sum() for g in case.group])
        return (size * group_mean(x, case.group) - x) / (size - 1)

    process = sum_to_go(implicit - mean_of_others(row_mean)[:, None], case.mask)
    advantage = process + (case.reward - mean_of_others(case.reward))[:, None]

    loss = ppo_loss(token_mean)
    return Update(advantage, loss, minibatches=4, kept=kept)


@reference(
    "prl",
    "MaxwellJryao/Process-Reward-Learning, ray_trainer.py (lines 1082 to 1140), core_algos.py"
    " (compute_prm_outcome_advantage), runs/run_grpo.sh",
    code="prl(inverse_kl_coef=2.0, step_length=2)",
)
def prl(case: Case) -> Update:
    future = sum_to_go(case.old_logp - case.signals["logp@ref"], case.mask)
    score = z_score(case.reward, case.group)
    advantage = np.zeros(case.mask.shape)
    for i in range(len(case.reward)):
        actions = np.flatnonzero(case.mask[i])
        for start in range(0, len(actions), 2):
            step = actions[start : start + 2]
            advantage[i, step] = score[i] - future[i, step[-1]] / 2.0

    loss = ppo_loss(token_mean)
    return Update(advantage, loss)


HITS = np.array(
    [[0, 1, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0]] * 4
)


@reference(
    "rank_grpo",
    "yaochenzhu/Rank-GRPO, libs/trl/rank_grpo_trainer.py (lines 1787 to 1830 and 1976 to 2093)",
    signals={"step/hit": HITS[:15].tolist()},
)
def rank_grpo(case: Case) -> Update:
    """An item is a turn, and a hit is marked at one of its actions; a missing item is no hit."""
    advantage = np.zeros(case.mask.shape)
    for rank in (0, 1):
        item = case.mask & (case.turn == rank)
        hit = (case.signals["step/hit"] * item).max(1)
        spread = group_std(hit, case.group) + 1e-4
        advantage += ((hit - group_mean(hit, case.group)) / spread)[:, None] * item

    def loss(batch, pi):
        log_ratio = np.zeros(batch.mask.shape, dtype=complex)
        for rank in (0, 1):
            item = batch.mask & (batch.turn == rank)
            total = ((pi["logp"] - batch.old_logp) * item).sum(1)
            log_ratio += (total / np.maximum(item.sum(1), 1))[:, None] * item
        surrogate = clipped_surrogate(np.exp(log_ratio), batch.advantage, 0.06, 0.08)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return token_mean(surrogate + 0.001 * kl, batch.mask)

    return Update(advantage, loss)
