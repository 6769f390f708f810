"""Replay of a task's own rollouts: which ones are remembered, and which groups they join.

Compared, step by step: the rollouts that a group is trained on, in order, and those that are
remembered of its task. A rollout is (name, reward).

Written from
    dvlab-research/ARPO, verl/trainer/replay_buffer.py, and verl/trainer/ray_trainer.py,
        `apply_replay`, lines 722 to 761: a group with a standard deviation (by n) below 0.05 and a
        mean below 0.2 has one remembered success, drawn uniformly, in the place of its first
        rollout; afterwards all rollouts of the step with a result above 0.1 are remembered, also a
        replaced one; of more than 8 the oldest leaves;
    arXiv:2601.19620, algorithm 1 and section 3.2.1, as public excerpts quote them, for R^3: a group
        of wrong rollouts gets correct ones of the past, and the reverse. That the newest ones come
        first, at the end of the group, and that the best and the worst rollout are remembered, of
        equals the newest, is our reading: the paper remembers all and does not say which it takes.
"""

from collections.abc import Sequence

import numpy as np

Rollout = tuple[str, float]  # name and reward


def arpo_failed(rewards: Sequence[float]) -> bool:
    """A success may join the group."""
    return bool(np.std(rewards) < 0.05 and np.mean(rewards) < 0.2)


def arpo_group(group: Sequence[Rollout], success: Rollout | None) -> list[Rollout]:
    """The group that is trained on.

    Args:
        group: The rollouts of the step.
        success: The remembered success that was drawn; None if there is none.
    """
    if success is None or not arpo_failed([reward for _, reward in group]):
        return list(group)
    return [success, *group[1:]]


def arpo_memory(
    memory: Sequence[Rollout], group: Sequence[Rollout], capacity: int
) -> list[Rollout]:
    """The successes of the task after the step, oldest first."""
    return [*memory, *(r for r in group if r[1] > 0.1)][-capacity:]


def r3_group(group: Sequence[Rollout], memory: Sequence[Rollout], count: int) -> list[Rollout]:
    """The group with up to `count` remembered rollouts of the outcome that it lacks."""
    outcomes = {reward > 0.5 for _, reward in group}
    if len(outcomes) > 1:
        return list(group)
    missing = [r for r in memory if (r[1] > 0.5) not in outcomes]
    return [*group, *missing[-count:]]


def r3_memory(memory: Sequence[Rollout], group: Sequence[Rollout], count: int) -> list[Rollout]:
    """The `count` best and the `count` worst rollouts of the task, of equals the newest."""
    known = [*memory, *group]
    best = sorted(range(len(known)), key=lambda i: (known[i][1], i))[-count:]
    worst = sorted(range(len(known)), key=lambda i: (-known[i][1], i))[-count:]
    return [known[i] for i in sorted({*best, *worst})]
