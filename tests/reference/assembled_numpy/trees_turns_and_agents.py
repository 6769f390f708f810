"""Methods for trees of rollouts, for several turns, tools and players."""

import numpy as np

from tests.reference.assembled_numpy.case import OBSERVATION, WIDTH, Case
from tests.reference.assembled_numpy.formulas import (
    clip,
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    minimum,
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
    "arpo_agentic",
    "dongguanting/ARPO, ARPO/scripts/ARPO_7B_Reasoning_1node.sh and config/ppo_trainer.yaml: GRPO",
)
def arpo_agentic(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), clipped_token_mean(), minibatches=8)


@reference(
    "arpo_gui_replay",
    "dvlab-research/ARPO, compute_policy_loss and compute_grpo_outcome_advantage of"
    " verl/trainer/core_algos.py, in micro-batches of one row: examples/osworld_full_arpo.sh",
    ratio_spread=1.0,
)
def arpo_gui_replay(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.signals["logp@current"])
        clipped = clipped_surrogate(ratio, batch.advantage, 0.2, 0.3)
        bounded = minimum(clipped, -3.0 * batch.advantage)
        return mean_of_row_means(np.where(batch.advantage < 0, bounded, clipped), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=2)


@reference(
    "aspo_tir",
    "a third party's apply_aspo_shaping for verl (verl/trainer/ppo/aspo.py)",
    reward="correct",
    terms={
        "correct": (1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1),
        "first_call": (0, 2, 1, -1, 3, 1, 1, 0, 0, 1, 2, 3, 1, 2, 3),
    },
)
def aspo_tir(case: Case) -> Update:
    z = z_score(case.reward, case.group)
    position = case.terms["first_call"]
    eligible = (case.terms["correct"] > 0) & (position >= 0)
    advantage = z.copy()
    for g in np.unique(case.group):
        rows = eligible & (case.group == g)
        if rows.any():
            early = position[rows] - position[rows].mean()
            bias = -2.0 * early / case.lengths[rows].mean()
            limit = 0.7 * np.abs(z[rows])
            advantage[rows] += np.clip(bias, -limit, limit)
    return Update(advantage, clipped_row_mean())


@reference(
    "e_grpo",
    "arXiv:2510.24694, version 2, eq. 3 to 6",
    terms={
        "correct": (1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0),
        "entities": (0.4, 0.8, 0.2, 0, 0.5, 0.6, 0.3, 0.1, 0, 0, 0, 0, 0.9, 0.3, 0.6),
        "format": (1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1),
        "overlong": (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0),
    },
)
def e_grpo(case: Case) -> Update:
    terms = case.terms
    most = np.array([terms["entities"][case.group == g].max() for g in case.group])
    share = terms["entities"] / np.where(most > 0, most, 1)
    reward = (
        np.where(terms["correct"] > 0, 1.0, 0.3 * share) * terms["format"] * (1 - terms["overlong"])
    )

    advantage = z_score(reward, case.group) * (1 - terms["overlong"])
    return Update(advantage, clipped_token_mean(0.2, 0.28))


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
    "gcpo",
    "arXiv:2506.07160, group contrastive masking, from memory of the paper; without length reward",
    code="gcpo(max_length=64, reward_weights=(0.5, 0.5, 0.0))",
    terms={
        "correct": (1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0),
        "construction": (1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1),
        "format": (1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1),
    },
)
def gcpo(case: Case) -> Update:
    correct, construction = case.terms["correct"], case.terms["construction"] > 0
    gate = np.zeros(len(correct))
    for g in np.unique(case.group):
        rows = case.group == g
        using, others = rows & construction, rows & ~construction
        if using.any() and others.any():
            gain = correct[using].mean() - correct[others].mean()
            gate[rows] = (gain > 0.1) * 1.0 - (gain < -0.1)
    reward = correct + 0.5 * case.terms["format"] + 0.5 * gate * construction
    return Update(z_score(reward, case.group), clipped_row_mean())


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
    return Update(advantage, with_kl(0.01, token_mean))


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
    return Update(to_actions(case, step), with_kl(0.01, token_mean))


@reference(
    "hill",
    "Andree-9/HiLL, compute_hint_reward (transfer_weighted_non_deg), select_best_hint and"
    " build_batch_with_best_hints of verl/trainer/ppo/hinter_utils.py, hill_ray_trainer.py,"
    " scripts/run_hill.sh",
    groups=(3, 13),
    reward=(1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0),
    terms={
        "is_hint": (0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0),
        "hint_index": (0, 0, 0, 0, 0, 1, 2, 3, 4, 1, 1, 1, 2, 2, 2, 3),
        "hint_rejected": (0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0),
    },
)
def hill(case: Case) -> Update:
    """Group 1 failed without a hint: four hints, the last of which is rejected, and answers.

    Hinter and solver are trained on batches of their own; the best hint's answers replace others.
    """
    index, is_hint = case.terms["hint_index"], case.terms["is_hint"] > 0
    reliance = row_mean(case.signals["logp@unhinted"] - case.old_logp, case.mask)
    value = np.zeros(len(index))
    for i in np.flatnonzero(is_hint):
        answers = (case.group == case.group[i]) & (index == index[i]) & ~is_hint
        if case.terms["hint_rejected"][i]:
            value[i] = -0.2
        elif 0 < case.reward[answers].mean() < 1:
            p, n = case.reward[answers].mean(), answers.sum()
            transfer = min(reliance[answers & (case.reward > 0.5)].mean(), 0)
            value[i] = (1 - p**n - (1 - p) ** n) * np.exp(transfer / 0.3)
    advantage = z_score(case.reward, case.group) * (case.group == 0)
    hints = np.flatnonzero(is_hint)
    advantage[hints] = z_score(value[hints], case.group[hints])
    best = index[hints[np.argmax(value[hints])]]
    answers = np.flatnonzero((case.group == 1) & (index == best) & ~is_hint)
    advantage[answers] = z_score(case.reward[answers], case.group[answers])

    def loss(batch, pi):
        hint = batch.terms["is_hint"] > 0
        chosen = ~hint & (batch.terms["hint_index"] == np.where(batch.group == 1, best, 0))
        per_action = surrogate(batch, pi, 0.2, 0.28)
        means = [
            token_mean(per_action[rows], batch.mask[rows]) for rows in (hint, chosen) if rows.any()
        ]
        return sum(means)

    return Update(advantage, loss, minibatches=2)


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
    return Update(to_actions(case, z), with_kl(0.001, mean_of_row_means), minibatches=16)


@reference(
    "loop",
    "apple/ml-loop, phi_agents/rl/train.py and conf/rl/params/default.yaml",
    reward=(1, 0, 0, 0.5, 0.3, 0.3, 0.3, 0.305, 0, 0, 0, 0, 1, 0.4, 0.7),
)
def loop(case: Case) -> Update:
    """Rollouts that the source drops stay in their minibatch with a loss of 0.

    The source divides by the constant size of its minibatches, of kept rollouts alone.
    """
    n = np.array([(case.group == g).sum() for g in case.group])
    advantage = (case.reward - group_mean(case.reward, case.group)) * n / (n - 1)
    advantage = advantage * (np.abs(advantage) >= 0.01)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return mean_of_row_means(
            clipped_surrogate(ratio, batch.advantage, 1 - 1 / 1.1, 0.1), batch.mask
        )

    return Update(advantage, loss, epochs=2, minibatches=8)


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
    return Update(advantage, clipped_row_mean(), epochs=2)


@reference(
    "otc_po",
    "arXiv:2504.14870, version 2, eq. 6, 7 and 9, c of section 4.1",
    terms={
        "correct": (1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1),
        "tool_calls": (2, 4, 1, 7, 0, 3, 1, 1, 0, 1, 2, 3, 1, 1, 2),
    },
    history=[[], [], [], []],
)
def otc_po(case: Case) -> Update:
    calls, correct = case.terms["tool_calls"], case.terms["correct"]
    reward = np.zeros(len(calls))
    for i in np.flatnonzero(correct > 0):
        fewest = calls[(case.group == case.group[i]) & (correct > 0)].min()
        m = calls[i]
        if fewest > 0:
            reward[i] = np.sin(np.pi * (2 * m * fewest / (m + fewest)) / (2 * fewest))
        else:
            reward[i] = np.cos(np.pi * m / (2 * m + 4.0))
    return Update(z_score(reward, case.group), clipped_row_mean())


@reference(
    "pta_grpo",
    "arXiv:2510.01833, outcome, accuracy of the plan's chains and format, from memory of the paper",
    terms={
        "correct": (1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0),
        "first_turn": (0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1),
        "format": (1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1),
    },
)
def pta_grpo(case: Case) -> Update:
    terms = case.terms
    accuracy = group_mean(terms["correct"], 10 * case.group + terms["first_turn"])
    reward = terms["correct"] + 0.5 * accuracy + 0.1 * terms["format"]
    return Update(z_score(reward, case.group), clipped_row_mean())


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


@reference("sage_self_hint", "BaohaoLiao/SAGE, scripts/run_sage.sh: GRPO of verl")
def sage_self_hint(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), clipped_token_mean(0.2, 0.28), minibatches=2)


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
    return Update(to_actions(case, advantage), clipped_token_mean())


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


@reference(
    "stratified_grpo",
    "Wodlfvllf/grpo-composer, core/advantages/stratified.py, with std by n in a stratum",
    terms={"tool_calls": (0, 0, 1, 1, 2, 2, 2, 1, 0, 0, 1, 1, 1, 1, 1)},
)
def stratified_grpo(case: Case) -> Update:
    stratum = 10 * case.group + case.terms["tool_calls"]
    within = z_score(case.reward, stratum, ddof=0)
    overall = z_score(case.reward, case.group, ddof=0)
    return Update(0.8 * within + 0.2 * overall, clipped_row_mean())


@reference(
    "tempo",
    "arXiv:2509.18314, branch-gated temporal differences, from memory of the paper",
    signals={
        "step/item": [[1, 1 + i % 2, 0, 3, 4 + (i // 2) % 2, 5 + i % 3, 6] for i in range(15)]
    },
)
def tempo(case: Case) -> Update:
    item = np.where(case.mask, case.signals["step/item"], -1)

    def value(i, length):
        same = (case.group == case.group[i]) & (item[:, :length] == item[i, :length]).all(1)
        return case.reward[same].mean()

    advantage = np.zeros(item.shape)
    mean, std = group_mean(case.reward, case.group), group_std(case.reward, case.group)
    for i, t in np.argwhere(case.mask):
        difference = value(i, t + 1) - value(i, t)
        advantage[i, t] = (case.reward[i] - mean[i] + difference) / (std[i] + 1e-6)
    return Update(advantage, clipped_row_mean())


NODES = [
    *[[1, 1, 0, 3, 3, 7, 7], [1, 1, 0, 4, 4, 4, 4], [2, 2, 2, 2, 2, 2, 2], [1, 1, 0, 3, 3, 8, 8]],
    *[[1, 1, 0, 5, 5, 5, 5], [1, 1, 0, 3, 3, 8, 8], [2, 2, 2, 2, 2, 2, 2], [1, 1, 0, 4, 4, 4, 4]],
    *[[1, 1, 0, 3, 3, 7, 7], [2, 2, 2, 2, 2, 2, 2], [1, 1, 0, 5, 5, 9, 9], [1, 1, 0, 6, 6, 6, 6]],
    *[[1, 1, 0, 5, 5, 5, 5], [1, 1, 0, 3, 3, 8, 8], [2, 2, 0, 4, 4, 9, 9]],
]


@reference(
    "treepo",
    "multimodal-art-projection/TreePO,"
    " compute_tree_reinforce_plus_plus_baseline_outcome_advantage of"
    " verl/trainer/ppo/core_algos.py, adv_weight_strategy average of"
    " recipe/treepo/run_treepo_train.sh",
    reward=(1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1),
    signals={"step/node": NODES},
)
def treepo(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    part = case.select(np.flatnonzero(kept))
    node = part.signals["step/node"]
    paths = [tuple(dict.fromkeys(row[m])) for row, m in zip(node, part.mask, strict=True)]
    advantage = np.zeros(len(part.reward))
    for i, path in enumerate(paths):
        differences = []
        for depth in range(len(path)):
            same = [
                part.reward[j]
                for j, other in enumerate(paths)
                if part.group[j] == part.group[i] and other[:depth] == path[:depth]
            ]
            if len(same) > 1 or depth == 0:
                differences.append(part.reward[i] - np.mean(same))
        advantage[i] = np.mean(differences)
    values = np.repeat(advantage, part.lengths)
    advantage = (advantage - values.mean()) / np.sqrt(values.var(ddof=1) + 1e-8)
    return Update(advantage, clipped_token_mean(0.2, 0.28), minibatches=16, kept=kept)
