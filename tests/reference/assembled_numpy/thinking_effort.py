"""Methods in which the policy chooses between thinking and an answer at once."""

import numpy as np

from tests.reference.assembled_numpy.case import WIDTH, Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    minimum,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.length_budgets import sequence_log_ratio
from tests.reference.assembled_numpy.length_penalties import kimi_bonus
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference

THINK = (1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1)
CORRECT = (1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0)
FORMAT = (1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1)
FIRST = (np.arange(WIDTH) == 0) * np.ones((15, 1))


@reference(
    "ada_grpo",
    "TEAM-ARM/ARM, compute_ada_grpo_outcome_advantage of core_algos.py and"
    " stage2_scripts/trainer/run.sh",
    terms={"mode": (0, 0, 1, 3, 1, 1, 1, 2, 0, 1, 2, 3, 2, 0, 0)},
)
def ada_grpo(case: Case) -> Update:
    mode = case.terms["mode"]
    size = np.array([(case.group == g).sum() for g in case.group])
    rows = zip(case.group, mode, strict=True)
    alike = np.array([((case.group == g) & (mode == m)).sum() for g, m in rows])
    factor = 1 + 0.5 * (size / alike - 1) * (1 + np.cos(np.pi * 0.5))
    return Update(z_score(case.reward * factor, case.group), ppo_loss(kl_coef=0.001), minibatches=6)


@reference(
    "adacot",
    "arXiv:2505.11896, eq. 4 and 5 and section 3.2.1",
    terms={
        "think": THINK,
        "needed": (0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1),
        "format": FORMAT,
    },
    signals={"step/decision": FIRST},
)
def adacot(case: Case) -> Update:
    think, needed = case.terms["think"], case.terms["needed"]
    reward = case.reward - 0.2 * needed * (1 - think) - 0.3 * (1 - needed) * think
    reward = reward - 1.0 * (1 - case.terms["format"])

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        others = batch.signals["step/decision"] == 0  # the component of eq. 5 is left out
        return mean_of_row_means(surrogate * others, batch.mask)

    return Update(z_score(reward, case.group), loss)


@reference(
    "adaptthink",
    "THU-KEG/AdaptThink, adapt_think_core_algos.py, adapt_think_reward_manager.py and"
    " run_adapt_think_1.5b_deepscaler_16k_delta0.05_btz128_lr2e-6.sh",
    terms={
        "start": (0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1),
        "reference": (0.95, 0.95, 0.95, 0.95, 0.9, 0.9, 0.9, 0.9, 0, 0, 0, 0, 0.4, 0.4, 0.4),
    },
    ratio_spread=1.2,
)
def adaptthink(case: Case) -> Update:
    """The first token's old log-probability is that of the drawn start."""
    without = case.terms["start"] == 0
    advantage = case.reward - case.terms["reference"] + 0.05 * without

    def loss(batch, pi):
        ratio = np.exp(sequence_log_ratio(batch, pi) / batch.lengths)
        return np.mean(clipped_surrogate(ratio, batch.advantage[:, 0], 0.2, 0.2))

    return Update(advantage, loss)


@reference(
    "ares",
    "shawn0728/ARES, examples/reward_function/aepo.py, update_difficulty_and_skip_gid_set of"
    " ray_trainer.py, compute_policy_loss of core_algos.py, experiments/AEPO/config.yaml",
    code="ares(window=1)",
    groups=(4, 4, 4, 4),
    reward=(1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0),
    lengths=(7, 7, 2, 2, 7, 7, 2, 2, 7, 7, 2, 7, 2, 7, 2, 2),
    ratio_spread=1.6,
)
def ares(case: Case) -> Update:
    """The first step: the threshold is 0, alpha is 1/2 and beta is 1."""
    triggers = np.maximum(case.lengths - 1, 0)  # of them, a window of one token is complete
    accuracy, mean = group_mean(case.reward, case.group), group_mean(triggers, case.group)
    level = np.where(accuracy >= 2 / 3, "easy", np.where(accuracy >= 1 / 3, "medium", "hard"))
    reward = np.array(case.reward)
    for i in range(len(reward)):
        heads = np.unique(case.group[level == level[i]], return_index=True)[1]
        target = round(mean[level == level[i]][heads].mean())
        reward[i] += ares_bonus(str(level[i]), case.reward[i] == 1, triggers[i] - target, target)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.3)
        dual = minimum(surrogate, -3.0 * batch.advantage)
        surrogate = np.where(batch.advantage < 0, dual, surrogate)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return token_mean(surrogate + 0.01 * kl, batch.mask)

    return Update(z_score(reward, case.group), loss, minibatches=4)


def ares_bonus(level: str, correct: bool, delta: float, target: float) -> float:
    """The reward of `delta` triggers above the target; at most alpha = 1/2, 0.6 if hard."""
    kappa = {"easy": 2.0, "medium": 3.0, "hard": 4.0}[level]
    share = {"easy": 0.15, "medium": 0.25, "hard": 0.35}[level]
    temperature = {"easy": 2.0, "medium": 2.5, "hard": 3.0}[level]
    cap = 0.5 * (1.2 if level == "hard" else 1.0)
    margin = max(1.0, share * max(target, 1.0))

    def huber(x):
        x = max(x, 0.0)
        return 0.5 * x * x / kappa if x <= kappa else x - 0.5 * kappa

    def growth(x):
        return 1 / (1 + np.exp(-x / temperature))

    if not correct:
        gain = {"easy": 0.6, "medium": 0.8, "hard": 1.0}[level]
        return gain * cap * growth(max(delta - margin, 0.0))
    if level == "hard":
        if delta >= -margin:
            return cap * growth(delta + margin)
        return -min(cap, 0.5 * huber(-delta - margin) / (margin + kappa) * cap)
    distance = delta if level == "easy" else abs(delta)
    return -min(cap, huber(distance - margin) / (margin + kappa) * cap)


@reference(
    "autothink",
    "TU2021/AutoThink, _reweight_rewards of main_ppo.py, math_reward.py, reward_types.py and"
    " train_stage1.sh",
    code="autothink(mode_fraction=0.3, length_coef=0.1)",
    terms={"think": THINK, "correct": CORRECT, "format": FORMAT},
)
def autothink(case: Case) -> Update:
    think = case.terms["think"] == 1
    well_formed = case.terms["format"] == 1
    correct = (case.terms["correct"] == 1) & well_formed
    reward = np.where(think, np.where(correct, 1.0, 0.0), np.where(correct, 2.0, -1.0))
    reward = np.where(well_formed, reward, 0.0)
    for g in np.unique(case.group):
        for side, sign in ((correct, 1), (~correct, -1)):
            rows = (case.group == g) & side
            if rows.sum() > 1:
                lengths = case.lengths[rows]
                z = (lengths - lengths.mean()) / max(lengths.std(ddof=1), 1e-6)
                reward[rows] += sign * (np.exp(-0.1 * z) - 1)
    for mode, if_correct, if_wrong in ((think, 0.0, -1.0), (~think, 1.0, -2.0)):
        excess = np.clip(2 * (mode.mean() - 0.3), 0, 1)
        target = np.where(correct, if_correct, if_wrong)
        reward = np.where(mode, (1 - excess) * reward + excess * target, reward)
    return Update(z_score(reward, case.group), ppo_loss(), minibatches=2)


@reference(
    "hgpo_hybrid",
    "arXiv:2505.14631, eq. 5 to 12 and section 3.1",
    groups=(4, 4, 4, 4),
    terms={"mode": (0, 0, 1, 1) * 4},
    signals={"step/forced": (np.arange(WIDTH) < 2) * np.ones((16, 1))},
    reward=(0.2, 0.5, 0.6, 0.8, 0.2, 0.5, 0.3, 0.5, 1, 1, 0, 0.5, 0.7, 0.1, 0.9, 0.9),
    ratio_spread=1.0,
)
def hgpo_hybrid(case: Case) -> Update:
    think = case.terms["mode"] == 1
    intra, inter = np.zeros(len(think)), np.zeros(len(think))
    for g in np.unique(case.group):
        rows = case.group == g
        with_thinking = case.reward[rows & think].mean()
        best = with_thinking > case.reward[rows & ~think].mean() + 0.2
        inter[rows] = think[rows] == best
        for mode in (think, ~think):
            is_best = case.reward[rows & mode] == case.reward[rows & mode].max()
            intra[rows & mode] = is_best / is_best.sum()  # equal ones share it
    forced = case.signals["step/forced"] == 1
    advantage = z_score(intra, case.group)[:, None] + forced * z_score(inter, case.group)[:, None]

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.5, 0.5)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return np.mean(((surrogate + 0.001 * kl) * batch.mask).sum(1))

    return Update(advantage, loss)


@reference(
    "thinkdial",
    "arXiv:2508.18773, eq. 2 to 5 and section 4.1",
    reward=(1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0),
    terms={
        "correct": (1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0),
        "leak": (0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0),
        "mode": (1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0),
    },
)
def thinkdial(case: Case) -> Update:
    coef = np.array([0.0, 0.5, 1.0])[case.terms["mode"].astype(int)]
    length = kimi_bonus(case, case.terms["correct"] == 1)
    reward = case.reward + coef * length + 0.5 - case.terms["leak"]
    kept = group_std(case.reward, case.group) > 0
    advantage = z_score(reward[kept], case.group[kept])
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.28), kept=kept)


@reference(
    "thinkless",
    "VainF/Thinkless, compute_policy_loss and compute_grpo_outcome_advantage of core_algos.py,"
    " math_reward.py and scripts/rl/thinkless_1.5b_deepscaler.sh",
    terms={"think": THINK, "correct": CORRECT},
)
def thinkless(case: Case) -> Update:
    correct, think = case.terms["correct"] == 1, case.terms["think"] == 1
    reward = np.where(correct, np.where(think, 0.5, 1.0), -1.0)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        per_action = surrogate + 0.001 * k3(pi["logp"], batch.signals["logp@ref"])
        first = batch.mask & (np.arange(WIDTH) == 0)
        return 0.001 * token_mean(per_action, first) + token_mean(per_action, batch.mask & ~first)

    return Update(reward - group_mean(reward, case.group), loss, minibatches=2)
