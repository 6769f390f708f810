"""Methods that credit the turns of a rollout, and players of games."""

import numpy as np

from tests.reference.assembled_numpy.case import OBSERVATION, WIDTH, Case
from tests.reference.assembled_numpy.formulas import (
    clip,
    clipped_surrogate,
    group_mean,
    k3,
    mean_of_row_means,
    minimum,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss, surrogate
from tests.reference.assembled_numpy.update import Update, reference

TURNS = np.repeat([0, 1], [OBSERVATION + 1, WIDTH - OBSERVATION - 1])  # turn of each column


def by_turn(labels):
    """A step value (N, T) from the values of each row's two turns."""
    return [[row[turn] for turn in TURNS] for row in labels]


STATES = by_turn(
    [
        *[[1, 2], [1, 2], [1, 3], [1, 3]],
        *[[1, 2], [4, 2], [4, 4], [1, 2]],
        *[[1, 2], [1, 2], [1, 2], [1, 3]],
        *[[5, 6], [5, 6], [7, 6]],
    ]
)


ACTIONS = by_turn(
    [
        *[[1, 2], [1, 2], [1, 3], [2, 3]],
        *[[1, 2], [1, 2], [2, 2], [1, 2]],
        *[[1, 2], [1, 2], [1, 2], [1, 3]],
        *[[5, 6], [5, 6], [5, 6]],
    ]
)


def at_turn(case, turn):
    """True at the trained actions of a turn (N, T)."""
    return case.mask & (case.turn == turn)


def turn_sums(case, x):
    """The sum over each turn's actions (N, 2), and whether the rollout has the turn (N, 2)."""
    actions = [at_turn(case, turn) for turn in (0, 1)]
    sums = np.stack([(x * m).sum(1) for m in actions], 1)
    return sums, np.stack([m.any(1) for m in actions], 1)


def to_actions(case, per_turn):
    """Numbers per turn (N, 2) as numbers per action (N, T)."""
    return np.take_along_axis(per_turn, case.turn, 1)


def turn_label(case, name):
    """The label of each turn (N, 2), which is that of its first action."""
    return case.signals[name][:, [0, OBSERVATION + 1]]


@reference(
    "epo",
    "AlibabaResearch/DAMO-ConvAI, reward_weighted_loss of"
    " EPO/LLaMA-Factory/src/llamafactory/train/sft/trainer.py, as a mean over episodes",
    code="epo(gamma=0.5)",
)
def epo(case: Case) -> Update:
    score, _ = turn_sums(case, case.signals["step/reward"])
    score[:, 0] += 0.5 * score[:, 1]

    def loss(batch, pi):
        total = 0
        for turn in (0, 1):
            actions = at_turn(batch, turn)
            count = np.maximum(actions.sum(1), 1)
            total = total + (batch.advantage * pi["logp"] * actions).sum(1) / count
        turns = at_turn(batch, 0).any(1) * 1 + at_turn(batch, 1).any(1)
        return -np.mean(total / turns)

    return Update(to_actions(case, score), loss)


@reference(
    "gigpo",
    "arXiv:2505.10978, eq. 3 to 8, with F_norm = 1; langfengQ/verl-agent, gigpo/core_gigpo.py",
    signals={"step/state": STATES},
)
def gigpo(case: Case) -> Update:
    reward, has_turn = turn_sums(case, case.signals["step/reward"])
    returns = reward.copy()
    returns[:, 0] += 0.95 * reward[:, 1]
    state = turn_label(case, "step/state")
    step = np.zeros(returns.shape)
    for i, turn in np.argwhere(has_turn):
        same = (case.group == case.group[i])[:, None] & (state == state[i, turn]) & has_turn
        step[i, turn] = returns[i, turn] - returns[same].mean()
    episode = case.reward - group_mean(case.reward, case.group)
    advantage = episode[:, None] + to_actions(case, step)
    return Update(advantage, ppo_loss(token_mean, kl_coef=0.01))


@reference(
    "hgpo_history",
    "langfengQ/verl-agent, hgpo_advantage_estimate (mean_norm) of recipe/hgpo/core_hgpo.py, in a"
    " copy",
    signals={"step/state": STATES},
)
def hgpo_history(case: Case) -> Update:
    reward, has_turn = turn_sums(case, case.signals["step/reward"])
    returns = reward.copy()
    returns[:, 0] += 0.95 * reward[:, 1]
    state = turn_label(case, "step/state")
    clusters = {}
    for i, turn in np.argwhere(has_turn):
        for k in range(1, min(3, turn + 1) + 1):
            key = (case.group[i], k, *state[i, turn - k + 1 : turn + 1])
            clusters.setdefault(key, []).append((i, turn))
    levels = {}
    for key, members in clusters.items():
        mean = np.mean([returns[m] for m in members])
        for m in members:
            if len(members) > 1 and returns[m] != mean:
                levels.setdefault(m, []).append((key[1] + 1, returns[m] - mean))
    step = np.zeros(returns.shape)
    for m, items in levels.items():
        weight = np.array([w for w, _ in items], float)
        step[m] = (weight * [a for _, a in items]).sum() / weight.sum()
    return Update(to_actions(case, step), ppo_loss(token_mean, kl_coef=0.01))


@reference(
    "igpo",
    "arXiv:2510.14967, joint z-scores of a group's turn rewards and their sums from a turn on, from"
    " memory of the paper; GuoqingWang1/IGPO, verl/trainer/config/ppo_trainer.yaml",
    signals={"step/belief": by_turn([[0.1 + 0.03 * i, 0.9 - 0.05 * i] for i in range(15)])},
)
def igpo(case: Case) -> Update:
    belief = turn_label(case, "step/belief")
    _, has_turn = turn_sums(case, case.mask)
    two = has_turn[:, 1]
    rewards = np.where(two[:, None], np.stack([belief[:, 1] - belief[:, 0], case.reward], 1), 0)
    rewards[~two, 0] = case.reward[~two]
    z = np.zeros(rewards.shape)
    for g in np.unique(case.group):
        chosen = (case.group == g)[:, None] & has_turn
        x = rewards[chosen]
        z[chosen] = (x - x.mean()) / (x.std(ddof=1) + 1e-6)
    z[:, 0] += z[:, 1]
    return Update(to_actions(case, z), ppo_loss(kl_coef=0.001), minibatches=16)


@reference(
    "mars_selfplay",
    "thu-nics/MARS, reward_normalize_by_player, normalize_unique_values_by_player and masked_whiten"
    " of roll/utils/functionals.py, loss_func of roll/pipeline/base_worker.py,"
    " examples/multi_games/agentic_val_multi_games_selfplay.yaml",
    terms={"seat": (0, 1) * 7 + (0,)},
    ratio_spread=1.0,
)
def mars_selfplay(case: Case) -> Update:
    reward, has_turn = turn_sums(case, case.signals["step/reward"])
    seat = np.broadcast_to(case.terms["seat"][:, None], reward.shape)
    returns = np.zeros(reward.shape)
    for s in (0, 1):
        chosen = (seat == s) & has_turn
        reward = np.where(chosen, reward - reward[chosen].mean(), reward)
    reward = reward * has_turn
    returns = np.stack([reward.sum(1), reward[:, 1]], 1)
    for s in (0, 1):
        chosen = (seat == s) & has_turn
        returns = np.where(chosen, returns - np.unique(returns[chosen].round(9)).mean(), returns)
    x = to_actions(case, returns)
    values = x[case.mask]
    advantage = (x - values.mean()) / np.sqrt(values.var(ddof=1) + 1e-8)

    def loss(batch, pi):
        per_action = surrogate(batch, pi)
        bounded = minimum(per_action, -(1 + 2 * 0.2) * batch.advantage)
        per_action = np.where(batch.advantage < 0, bounded, per_action)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(per_action + 0.2 * kl, batch.mask)

    return Update(advantage, loss, minibatches=48)


@reference(
    "mt_grpo",
    "SiliangZeng/Multi-Turn-RL-Agent, _assign_advantages of"
    " verifiers/trainers/mt_grpo_env_trainer.py, scripts/run_mt_grpo.sh",
    signals={
        "step/reward": [[0, i % 3 / 2, 0, 0, 0, 0, 0] for i in range(15)],
    },
)
def mt_grpo(case: Case) -> Update:
    """A rollout of one turn, without a tool's result, has the advantage of both rewards' sum.

    It has no turn reward: the last turn's step reward holds the outcome.
    """
    reward, has_turn = turn_sums(case, case.signals["step/reward"])
    turn_reward = reward[:, 0] * has_turn[:, 1]
    outcome = z_score(case.reward, case.group, eps=1e-4)
    turn = z_score(turn_reward, case.group, eps=1e-4)
    both = z_score(case.reward + turn_reward, case.group, eps=1e-4)
    split = outcome[:, None] + turn[:, None] * (case.turn == 0)
    advantage = np.where(has_turn[:, 1:], split, both[:, None])
    return Update(advantage, ppo_loss(), epochs=2)


@reference(
    "rae",
    "arXiv:2506.24119, eq. 2 and 3 and algorithm 1; spiral-rl/spiral, spiral/utils.py",
    groups=(1,) * 6,
    reward=(1, -1, 0, 1, -1, 0.5),
    history=[[], [[1.0]], [[-1.0], [1.0]], [[0.5], [0.5], [1.0]], [[-1.0]], [[1.0], [0.0]]],
)
def rae(case: Case) -> Update:
    advantage = case.reward.copy()
    for i, groups in enumerate(case.history):
        baseline = 0.0
        for r in [*(r for rewards in groups for r in rewards), case.reward[i]]:
            baseline = 0.95 * baseline + 0.05 * r
        advantage[i] -= baseline

    def loss(batch, pi):
        return np.mean((-batch.advantage * pi["logp"] * batch.mask).sum(1))

    return Update(advantage, loss)


@reference(
    "salt",
    "arXiv:2510.20022: edges of equal history, state, action and next state are merged and have"
    " their mean advantage, from memory of the paper",
    signals={"step/state": STATES, "step/action": ACTIONS},
)
def salt(case: Case) -> Update:
    _, has_turn = turn_sums(case, case.signals["step/state"])
    z = z_score(case.reward, case.group)
    state, action = turn_label(case, "step/state"), turn_label(case, "step/action")
    steps = {}
    for i, turn in np.argwhere(has_turn):
        after = state[i, 1] if turn == 0 and has_turn[i, 1] else None
        key = (case.group[i], *state[i, : turn + 1], *action[i, : turn + 1], after)
        steps.setdefault(key, []).append((i, turn))
    advantage = np.zeros(has_turn.shape)
    for members in steps.values():
        for m in members:
            advantage[m] = np.mean([z[i] for i, _ in members])
    return Update(to_actions(case, advantage), ppo_loss(token_mean))


@reference(
    "seeupo",
    "modelscope/AgentEvolver, branch seeupo, beyondagent/module/trainer/ba_ray_trainer.py"
    " (compute_grpo_outcome_advantage_local, update_ratios), compute_policy_loss_gspo of"
    " external/verl/verl/trainer/ppo/core_algos.py",
    ratio_spread=0.5,
)
def seeupo(case: Case) -> Update:
    centered = case.reward - group_mean(case.reward, case.group)
    scaled = (centered - centered.mean()) / (centered.std(ddof=1) + 1e-8)

    def loss(batch, pi):
        later = np.ones(len(batch.mask))
        total, turns = 0, 0
        for turn in (1, 0):
            actions = at_turn(batch, turn)
            count = np.maximum(actions.sum(1), 1)
            ratio = np.exp(((pi["logp"] - batch.old_logp) * actions).sum(1) / count)
            weighted = batch.advantage[:, 0] * later
            per_turn = clipped_surrogate(ratio, weighted, 0.2, 0.2)
            kl = (k3(pi["logp"], batch.signals["logp@ref"]) * actions).sum(1) / count
            present = actions.any(1)
            total = total + ((per_turn + 0.002 * kl) * present).sum()
            turns = turns + present.sum()
            bounded = clip(stop_gradient(ratio), 0.8, 1.2)
            later = np.where(present, clip(later * bounded, 0.8, 1.2), later)
        return total / turns

    return Update(np.clip(scaled, -3, 3), loss, epochs=10)
