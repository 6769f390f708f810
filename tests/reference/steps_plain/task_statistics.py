"""Numbers that are kept of each task over its groups, and the advantages that follow from them.

Compared: the advantage, reward or mean of each rollout of a task's groups, one group after another.

Written from
    lime-RL/DCPO, verl/trainer/ppo/core_algos.py, `get_mean_std` and
        `compute_dcpo_outcome_advantage` (lines 365 to 480);
    eq. 6 and 7 of arXiv:2504.14870, version 2, from memory of the paper and the record of otc_po;
    the record of rae, which cites eq. 2 and algorithm 1 of arXiv:2506.24119, and spiral-rl/spiral,
        train_spiral.py, lines 488 to 493; the record takes the paper's order, in which the baseline
        is brought up to date first;
    verl-project/verl-recipe, spo/spo_ray_trainer.py, lines 356 to 364, 530 to 560 and 663 to 670,
        in the form without recorded rollouts (offline_N = 0) and with a constant rho.
"""

from collections.abc import Sequence
from math import cos, pi, sin

import numpy as np

Groups = Sequence[Sequence[float]]


def dcpo_advantages(groups: Groups) -> list[list[float]]:
    """Smoothed advantages of a task's groups; `mean` and `std` are those of all groups so far."""
    mean = std = 0.0
    result = []
    for times, rewards in enumerate(groups, 1):
        r = np.asarray(rewards, float)
        new_mean, new_std = r.mean(), r.std(ddof=1)
        if times == 1:
            mean, std = new_mean, new_std
        else:
            before = times - 1
            moved = before / times * (new_mean - mean) ** 2
            std = np.sqrt((before * std**2 + new_std**2 + moved) / times)
            mean = (before * mean + new_mean) / times
        new = (r - new_mean) / new_std if new_std > 0 else np.zeros(len(r))
        total = (r - mean) / std if std > 0 else np.zeros(len(r))
        first = total / times + (1 - 1 / times) * new
        second = new / times + (1 - 1 / times) * total
        result.append(np.where(abs(first) < abs(second), first, second).tolist())
    return result


def otc_rewards(calls: Groups, correct: Groups, smoothing: float) -> list[list[float]]:
    """Rewards of a task's groups: the outcome times the efficiency of the tool calls.

    The optimum n is the fewest calls of a correct rollout of the task so far, this group included.
    A rollout of m calls has the efficiency cos(m pi / (2 m + c)) if n = 0, else sin(f pi / (2 n))
    with f = 2 m n / (m + n); 1 where m = n = 0.
    """
    fewest = np.inf
    result = []
    for m_of_group, correct_of_group in zip(calls, correct, strict=True):
        solved = [m for m, c in zip(m_of_group, correct_of_group, strict=True) if c]
        fewest = min([fewest, *solved])
        result.append(
            [
                c * otc_efficiency(m, fewest, smoothing) if c else 0.0
                for m, c in zip(m_of_group, correct_of_group, strict=True)
            ]
        )
    return result


def otc_efficiency(calls: float, fewest: float, smoothing: float) -> float:
    """The efficiency of a correct rollout."""
    if fewest == 0:
        return 1.0 if calls == 0 else cos(calls * pi / (2 * calls + smoothing))
    f = 2 * calls * fewest / (calls + fewest)
    return sin(f * pi / (2 * fewest))


def spiral_advantages(rewards: Sequence[float], decay: float) -> list[float]:
    """Advantages of one role's rollouts, one after another: the baseline moves, then it counts."""
    baseline = 0.0
    result = []
    for reward in rewards:
        baseline = decay * baseline + (1 - decay) * reward
        result.append(reward - baseline)
    return result


def spo_values(rewards: Sequence[float], decay: float) -> list[float]:
    """The value v of a task before each of its rollouts, and after the last one."""
    alpha = beta = 0.5
    values = [0.5]
    for reward in rewards:
        alpha = decay * alpha + reward
        beta = decay * beta + 1 - reward
        values.append(alpha / (alpha + beta))
    return values
