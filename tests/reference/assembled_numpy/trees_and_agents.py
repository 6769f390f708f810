"""Methods for trees of rollouts and for agents with tools."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    group_std,
    mean_of_row_means,
    minimum,
    row_mean,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss, surrogate
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "arpo_agentic",
    "dongguanting/ARPO, ARPO/scripts/ARPO_7B_Reasoning_1node.sh and config/ppo_trainer.yaml: GRPO",
)
def arpo_agentic(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo_loss(token_mean), minibatches=8)


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
    return Update(advantage, ppo_loss())


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
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.28))


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
    return Update(z_score(reward, case.group), ppo_loss())


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
    return Update(z_score(reward, case.group), ppo_loss())


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
    return Update(z_score(reward, case.group), ppo_loss())


@reference("sage_self_hint", "BaohaoLiao/SAGE, scripts/run_sage.sh: GRPO of verl")
def sage_self_hint(case: Case) -> Update:
    return Update(z_score(case.reward, case.group), ppo_loss(token_mean, 0.2, 0.28), minibatches=2)


@reference(
    "stratified_grpo",
    "Wodlfvllf/grpo-composer, core/advantages/stratified.py, with std by n in a stratum",
    terms={"tool_calls": (0, 0, 1, 1, 2, 2, 2, 1, 0, 0, 1, 1, 1, 1, 1)},
)
def stratified_grpo(case: Case) -> Update:
    stratum = 10 * case.group + case.terms["tool_calls"]
    within = z_score(case.reward, stratum, ddof=0)
    overall = z_score(case.reward, case.group, ddof=0)
    return Update(0.8 * within + 0.2 * overall, ppo_loss())


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
    return Update(advantage, ppo_loss())


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
    return Update(advantage, ppo_loss(token_mean, 0.2, 0.28), minibatches=16, kept=kept)
