"""Methods for images and for masked diffusion models of text."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    group_mean,
    group_std,
    k3,
    mean_of_row_means,
    stop_gradient,
    token_mean,
    z_score,
)
from tests.reference.assembled_numpy.losses import ppo_loss
from tests.reference.assembled_numpy.update import Update, reference


@reference(
    "coupled_grpo",
    "apple/ml-diffucoder: compute_loss and leave_one_out in src/open_r1/coupled_grpo.py,"
    " recipes/config_coupled_code.yaml",
    ratio_spread=1.2,
)
def coupled_grpo(case: Case) -> Update:
    size = np.array([(case.group == g).sum() for g in case.group])
    others = (group_mean(case.reward, case.group) * size - case.reward) / (size - 1)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.5, 0.5)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return token_mean(surrogate + 0.01 * kl, batch.mask)

    return Update(case.reward - others, loss, epochs=2)


@reference(
    "flow_grpo",
    "yifan123/flow_grpo: flow_grpo/stat_tracking.py and scripts/train_sd3.py, lines 881 to 899",
    code="flow_grpo(max_advantage=1.0)",
    ratio_spread=5e-4,
    move=1e-4,
)
def flow_grpo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 1e-4, 1e-4)
        return mean_of_row_means(surrogate + 0.04 * pi["reverse_kl@ref"], batch.mask)

    advantage = np.clip(z_score(case.reward, case.group), -1, 1)
    return Update(advantage, loss, minibatches=2)


@reference(
    "grpo_guard",
    "arXiv:2510.22319, eq. 8 and 12, as the tests of TeleBoost and the trainers derived from"
    " flow_grpo have them",
    code="grpo_guard(clip_eps=0.1)",
    ratio_spread=2.5,
    signals={
        "step/std": np.tile([0.5, 0.3, 0.4, 0.2, 0.6, 0.35, 0.1], (15, 1)).tolist(),
        "step/dt": np.tile([0.1, 0.2, 0.1, 1e-4, 0.05, 0.15, 0.3], (15, 1)).tolist(),
    },
)
def grpo_guard(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = pi["logp"] - batch.old_logp
        std, dt = batch.signals["step/std"], batch.signals["step/dt"]
        ratio = np.exp(std * (log_ratio + pi["reverse_kl@old"]))
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.1, 0.1)
        return mean_of_row_means(surrogate / np.maximum(dt, 1e-3), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=2)


@reference(
    "justgrpo",
    "LeapLabTHU/JustGRPO: logprob_loss and compute_group_advantages in grpo.py",
    code="justgrpo(max_length=6)",
    reward="binary",
    ratio_spread=0.0,
    not_compared=dict.fromkeys(
        ("clip side swapped", "clip bound shifted"),
        "the release takes the ratio to the policy itself, which is 1: all ratios are 1 here",
    ),
)
def justgrpo(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - stop_gradient(pi["logp"]))
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        return np.mean((surrogate * batch.mask).sum(1) / 6)

    return Update(z_score(case.reward[kept], case.group[kept], eps=1e-4), loss, kept=kept)


@reference(
    "pref_grpo",
    "CodeGoat24/Pref-GRPO: compute_weighted_advantages in fastvideo/rewards/dispatcher.py,"
    " train_one_step in fastvideo/train_flux.py",
    code="pref_grpo(max_advantage=1.0)",
    terms={"win_rate": "real"},
    ratio_spread=5e-4,
    move=1e-4,
)
def pref_grpo(case: Case) -> Update:
    loss = ppo_loss(low=1e-4, high=1e-4)
    advantage = np.clip(z_score(case.terms["win_rate"], case.group), -1, 1)
    return Update(advantage, loss, minibatches=2)


@reference(
    "prompt_echo",
    "roooobotx/prompt_echo, README; GRPO for the rest",
    terms={"echo": [-2, -1, -4, -3, -3, -5, -1, -2, -2, -2, -2, -2, -1, -2, -4]},
)
def prompt_echo(case: Case) -> Update:
    loss = ppo_loss()
    echo = case.terms["echo"]
    return Update(echo - group_mean(echo, case.group), loss)


@reference(
    "tempflow_grpo",
    "Shredded-Pork/TempFlow-GRPO: scripts/train_sd3_pr.py; stat tracker of flow_grpo",
    code="tempflow_grpo(max_advantage=1.0)",
    groups=(8, 7),
    reward=[0.1, 0.9, 0.4, 0.3, 0.8, 1.0, 0.2, 0.6, 0.7, 0.0, 0.5, 0.9, 0.2, 0.2, 0.2],
    terms={"branch_step": [0, 0, 0, 1, 1, 1, 3, 3, 0, 0, 1, 1, 1, 3, 3]},
    lengths=(1,) * 16,
    signals={"step/std": [[0.6] * 7] * 3 + [[0.4] * 7] * 3 + [[0.1] * 7] * 4 + [[0.3] * 7] * 5},
    ratio_spread=5e-4,
    move=1e-4,
)
def tempflow_grpo(case: Case) -> Update:
    branch = 10 * case.group + case.terms["branch_step"]
    std = case.signals["step/std"][:, 0]  # each rollout has one action with noise
    weight = std / group_mean(std, case.group)
    advantage = weight * np.clip(z_score(case.reward, branch), -1, 1)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 1e-4, 1e-4)
        return mean_of_row_means(surrogate + 0.004 * pi["reverse_kl@ref"], batch.mask)

    return Update(advantage, loss, minibatches=2)


def _tree() -> tuple[list[list[float]], list[list[float]]]:
    """Depth and node of each action of two trees that split in two before columns 0, 3 and 5."""
    column_depth = [1, 1, 1, 2, 2, 3, 3]
    nodes = []
    for leaf in range(8):
        path = [1 + leaf // 4, 3 + leaf // 2, 7 + leaf]
        nodes.append([float(path[d - 1]) for d in column_depth])
    return [[float(d) for d in column_depth]] * 16, nodes * 2


@reference(
    "branch_grpo",
    "Fredreic1849/BranchGRPO: compute_node_rewards_from_leaves,"
    " compute_hierarchical_advantages_by_depth and the loss in fastvideo/train_branchgrpo_flux.py",
    code="branch_grpo(split_steps=(0, 3, 5), max_advantage=1.0, logp_coef=0.5)",
    groups=(8, 8),
    lengths=(7,) * 16,
    signals={"step/depth": _tree()[0], "step/node": _tree()[1]},
    ratio_spread=2e-3,
    move=1e-3,
)
def branch_grpo(case: Case) -> Update:
    node = case.signals["step/node"]
    # proportional to p(leaf | node)^0.5: leaves of a node share the path to it
    weight = np.exp(0.5 * (case.old_logp * case.mask).sum(1))
    advantage = np.zeros(case.mask.shape)
    for column in range(case.mask.shape[1]):  # its nodes have the same depth
        for g in np.unique(case.group):
            leaves = [
                (case.group == g) & (node[:, column] == n)
                for n in np.unique(node[case.group == g, column])
            ]
            v = np.array([np.average(case.reward[x], weights=weight[x]) for x in leaves])
            scores = z_score(v, np.zeros(len(v)))
            for x, score in zip(leaves, scores, strict=True):
                advantage[x, column] = np.clip(score, -1, 1)

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 1e-3, 1e-3)
        copies = np.array([[_copies(batch, i, t) for t in range(7)] for i in range(len(ratio))])
        weight = batch.mask / copies
        return (weight * surrogate).sum() / weight.sum()

    return Update(advantage, loss)


def _copies(batch: Case, row: int, column: int) -> int:
    """Rows of the group that share the denoising step."""
    node = batch.signals["step/node"][:, column]
    return int(((batch.group == batch.group[row]) & (node == node[row])).sum())
