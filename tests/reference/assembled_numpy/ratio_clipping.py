"""Methods that bound the importance ratio."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
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
from tests.reference.assembled_numpy.losses import ppo_loss, surrogate
from tests.reference.assembled_numpy.update import Update, reference


@reference("grpo", "arXiv:2402.03300, eq. 3 and 4")
def grpo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        kl = k3(pi["logp"], batch.signals["logp@ref"])
        return mean_of_row_means(surrogate + 0.04 * kl, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference(
    "dapo",
    "arXiv:2503.14476, eq. 8 to 13",
    code="dapo(max_length=6, overlong_buffer=3)",
    reward="binary",
)
def dapo(case: Case) -> Update:
    overlong = np.clip((case.lengths - (6 - 3)) / 3, 0, 1)
    shaped = 2 * case.reward - 1 - overlong
    kept = group_std(case.reward, case.group) > 0

    loss = ppo_loss(token_mean, 0.2, 0.28)
    return Update(z_score(shaped[kept], case.group[kept]), loss, minibatches=16, kept=kept)


@reference(
    "cispo",
    "arXiv:2506.13585, section 3.1, eq. 4 and 5 (from memory of the paper); arXiv:2510.13786",
    code="cispo(clip_low=0.5, clip_high=1.0)",
    ratio_spread=2.5,
)
def cispo(case: Case) -> Update:
    def loss(batch, pi):
        weight = stop_gradient(clip(np.exp(pi["logp"] - batch.old_logp), 1 - 0.5, 1 + 1.0))
        return token_mean(-weight * batch.advantage * pi["logp"], batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=16)


@reference(
    "dcpo_dynamic_clip",
    "lime-RL/DCPO: README.md, section 4; get_mean_std, compute_dcpo_outcome_advantage,"
    " get_clip_low_high and compute_policy_loss_dcpo in verl/trainer/ppo/core_algos.py",
    ratio_spread=2.0,
    reward=[0.6, 0.9, 0.8, 0.2, 0.3, 0.9, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.9, 0.5, 0.1],
    history=[
        [],
        [[0.0, 1.0, 0.5, 0.2]],
        [[0.0, 1.0, 1.0, 0.3], [1.0, 0.0, 0.5, 0.5]],
        [[0.1, 0.9, 0.3], [0.2, 0.1, 0.8], [1.0, 1.0, 0.3]],
    ],
)
def dcpo_dynamic_clip(case: Case) -> Update:
    advantage = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        r = case.reward[case.group == g]
        advantage[case.group == g] = _smooth_advantage(r, case.history[g])

    def loss(batch, pi):
        q = np.exp(batch.old_logp)
        low = 0.5 + 0.5 * np.sqrt(np.maximum(1 - 4 * 0.16 / q, 0))
        high = np.minimum(0.5 + 0.5 * np.sqrt(1 + 4 * 0.2 / q), 10)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        a = batch.advantage
        objective = minimum(ratio * a, clip(ratio, low, high) * a)
        objective = np.where(a < 0, maximum(objective, 10 * a), objective)
        # "only token mean": the rows of a group are summed
        return len(a) * mean_of_row_means(-objective, batch.mask)

    return Update(advantage, loss, minibatches=16)


def _smooth_advantage(r: np.ndarray, earlier: list) -> np.ndarray:
    """The z-scores within step i and over all steps, mixed by (i - 1) / i; the smaller of two."""
    mean, std = 0.0, 0.0
    for i, x in enumerate([*earlier, r], 1):
        x = np.asarray(x)
        variance = (i - 1) * std**2 + x.std(ddof=1) ** 2 + (i - 1) / i * (x.mean() - mean) ** 2
        mean, std = ((i - 1) * mean + x.mean()) / i, np.sqrt(variance / i)
    new = (r - r.mean()) / (r.std(ddof=1) + 1e-6)
    total = (r - mean) / (std + 1e-6)
    mostly_new = (i - 1) / i * new + 1 / i * total
    mostly_total = 1 / i * new + (i - 1) / i * total
    return np.where(np.abs(mostly_new) < np.abs(mostly_total), mostly_new, mostly_total)


@reference(
    "etr",
    "arXiv:2601.03723, abstract",
    ratio_spread=0.01,
    not_compared=dict.fromkeys(
        ("clip side swapped", "clip bound shifted"),
        "no source states the form of the clip: all ratios lie within it",
    ),
)
def etr(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return mean_of_row_means(-ratio * batch.advantage, batch.mask)

    return Update(z_score(case.reward, case.group), loss)


@reference("gmpo", "callsys/GMPO: compute_monte_carlo_advantages, gmpo in train_zero_math_gmpo.py")
def gmpo(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = pi["logp"] - batch.old_logp
        bounded = np.where(
            batch.advantage >= 0,
            minimum(log_ratio, 0.4 + 0 * log_ratio),
            maximum(log_ratio, -0.4 + 0 * log_ratio),
        )
        ratio = np.exp((bounded * batch.mask).sum(1) / batch.lengths)
        return np.mean(-ratio * batch.advantage[:, 0])

    return Update(z_score(case.reward, case.group), loss, minibatches=8)


@reference(
    "gppo",
    "suu990901/KlearReasoner: compute_gppo_loss in verl/trainer/ppo/core_algos.py",
    value_differs="the release's is clip bound / sg(r) * r",
)
def gppo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        unit = ratio / stop_gradient(ratio)
        bounded = np.where(
            np.real(ratio) < 0.8, 0.8 * unit, np.where(np.real(ratio) > 1.28, 1.28 * unit, ratio)
        )
        a = batch.advantage
        return token_mean(-minimum(ratio * a, bounded * a), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=8)


@reference(
    "gspo",
    "arXiv:2507.18071, eq. 5 and 7",
    ratio_spread=4e-3,
    move=5e-4,
    reward=[0.8, 0.3, 0.2, 0.9, 0.9, 0.1, 0.7, 0.2, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2, 0.9],
)
def gspo(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = (pi["logp"] - batch.old_logp) * batch.mask
        s = np.exp(log_ratio.sum(1) / batch.lengths)
        return np.mean(clipped_surrogate(s, batch.advantage[:, 0], 3e-4, 4e-4))

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "gspo_token",
    "arXiv:2507.18071, eq. 13 and 14",
    ratio_spread=4e-3,
    move=5e-4,
    reward=[0.8, 0.3, 0.2, 0.9, 0.9, 0.1, 0.7, 0.2, 0.5, 0.5, 0.5, 0.5, 0.1, 0.2, 0.9],
)
def gspo_token(case: Case) -> Update:
    def loss(batch, pi):
        log_ratio = (pi["logp"] - batch.old_logp) * batch.mask
        s = stop_gradient(np.exp(log_ratio.sum(1) / batch.lengths))[:, None]
        s_t = s * np.exp(pi["logp"] - stop_gradient(pi["logp"]))
        return mean_of_row_means(clipped_surrogate(s_t, batch.advantage, 3e-4, 4e-4), batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference("magistral", "arXiv:2506.10910, section 2.1 (from memory of the paper)")
def magistral(case: Case) -> Update:
    kept = group_std(case.reward, case.group) > 0
    r = case.reward[kept]
    centered = r - group_mean(r, case.group[kept])
    advantage = (centered - centered.mean()) / (centered.std(ddof=1) + 1e-8)

    loss = ppo_loss(token_mean, 0.2, 0.28)
    return Update(advantage, loss, kept=kept)


@reference(
    "ngrpo",
    "nangongrui-ngr/NGRPO: compute_ngrpo_outcome_advantage and compute_policy_loss in"
    " verl/trainer/ppo/core_algos.py",
    reward=[0, 1, 0, 0.5, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1],
)
def ngrpo(case: Case) -> Update:
    kept = group_mean(case.reward, case.group) < 1  # filter_groups.strategy=all_correct
    advantage = np.zeros(len(case.reward))
    for g in np.unique(case.group):
        r = case.reward[case.group == g]
        with_virtual = np.append(r, 1.0)
        advantage[case.group == g] = (r - with_virtual.mean()) / (with_virtual.std(ddof=1) + 1e-6)

    loss = ppo_loss(token_mean, 0.16, 0.24)
    return Update(advantage[kept], loss, minibatches=4, kept=kept)


@reference(
    "raft_pp",
    "arXiv:2504.11343, eq. 6; RLHFlow/Minimal-RL: compute_raft_outcome_advantage in"
    " verl/trainer/ppo/core_algos.py",
    reward="binary",
)
def raft_pp(case: Case) -> Update:
    kept = case.reward > 0

    loss = ppo_loss()
    return Update(case.reward[kept], loss, minibatches=4, kept=kept)


@reference("sapo", "arXiv:2511.20347, as swift.readthedocs.io has it (AdvancedResearch/SAPO)")
def sapo(case: Case) -> Update:
    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        tau = np.where(batch.advantage > 0, 1.0, 1.05)
        gate = 4 / tau / (1 + np.exp(-tau * (ratio - 1)))
        return mean_of_row_means(-gate * batch.advantage, batch.mask)

    return Update(z_score(case.reward, case.group), loss, minibatches=4)


@reference(
    "tic_grpo",
    "Wodlfvllf/grpo-composer: length_corrected.py and trajectory_level.py in grpo_composer/core",
    ratio_spread=0.6,
    reward=[0.1, 0.6, 0.2, 0.3, 0.9, 0.2, 0.7, 0.4, 0.5, 0.5, 0.5, 0.5, 0.6, 0.2, 0.9],
)
def tic_grpo(case: Case) -> Update:
    def loss(batch, pi):
        w = np.exp(((pi["logp"] - batch.old_logp) * batch.mask).sum(1))
        return np.mean(-minimum(w, 1.2 + 0 * w) * batch.advantage[:, 0])

    return Update(z_score(case.reward / case.lengths, case.group), loss)


@reference("dual_clip", "arXiv:1912.09729, eq. 5; verl compute_policy_loss_vanilla", ratio_spread=2)
def dual_clip(case: Case) -> Update:
    def loss(batch, pi):
        per_action = surrogate(batch, pi)
        bounded = minimum(per_action, -3.0 * batch.advantage)
        return mean_of_row_means(np.where(batch.advantage < 0, bounded, per_action), batch.mask)

    return Update(z_score(case.reward, case.group), loss)
