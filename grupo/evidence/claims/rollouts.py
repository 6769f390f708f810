"""Rollouts of tabular environments as groups, from which the trainer's `collate` makes a batch."""

from collections.abc import Sequence

import numpy as np

from grupo.core.types import Group, Response, Rollout, Task
from grupo.evidence.claims.environments import Attempts, Scores, TabularEnv
from grupo.evidence.claims.environments.tabular import sample
from grupo.rollouts.samplers import GroupSampler, Sampler
from grupo.util.errors import ConfigError
from grupo.util.rng import derive_key

OBSERVATION = (0,)  # tokens before an action, which are masked; the policy reads cells instead


def make_tasks(env: TabularEnv) -> list[Task]:
    """The tasks of an environment; the key is the task's number."""
    return [Task(str(k), "") for k in range(env.num_tasks)]


def group_size_of(sampler: Sampler) -> int:
    """Rollouts per group of a sampler of independent rollouts.

    Raises:
        ConfigError: Another sampler or turn strategy, which vectorised sampling cannot replace.
    """
    if not isinstance(sampler, GroupSampler) or sampler != GroupSampler(sampler.group_size):
        raise ConfigError(f"sampler: {sampler!r}. Allowed: GroupSampler(…).")
    return sampler.group_size


def sample_groups(
    env: TabularEnv, logp: np.ndarray, tasks: Sequence[Task], group_size: int, key: int
) -> list[Group]:
    """Sample and score a group for each task.

    Args:
        env: The environment.
        logp: Log-probability of each item in each cell, of the policy that samples (S, A).
        tasks: The tasks; their `group_size`, where above 0, replaces `group_size`.
        group_size: Rollouts per group.
        key: Key of the random stream.
    """
    sizes = [task.group_size or group_size for task in tasks]
    group = np.repeat(np.arange(len(tasks)), sizes)
    task_index = np.array([int(task.key) for task in tasks], dtype=np.int64)[group]
    attempts = sample(env, logp, task_index, group, np.random.default_rng(key))
    scores = env.score(attempts, np.random.default_rng(derive_key(key, "score")))
    rollouts = make_rollouts(env, attempts, scores)
    ends = np.cumsum(sizes).tolist()
    return [
        Group(task, tuple(rollouts[end - size : end]))
        for task, size, end in zip(tasks, sizes, ends, strict=True)
    ]


def make_rollouts(env: TabularEnv, attempts: Attempts, scores: Scores) -> list[Rollout]:
    """The attempts as scored rollouts, with the cells and the oracle's numbers as step values."""
    numbers = {
        "cell": attempts.cell.astype(float),
        "preferred": env.preferred[attempts.cell, attempts.item],
        **scores.step_values,
    }
    columns = {name: values.tolist() for name, values in numbers.items()}
    terms = {name: values.tolist() for name, values in scores.terms.items()}
    rewards = scores.reward.tolist()
    lengths = attempts.length.tolist()
    return [
        Rollout(
            turns=turns,
            reward=rewards[i],
            reward_terms={name: values[i] for name, values in terms.items()},
            step_values={name: tuple(rows[i][: lengths[i]]) for name, rows in columns.items()},
        )
        for i, turns in enumerate(_all_turns(env, attempts))
    ]


def _all_turns(env: TabularEnv, attempts: Attempts) -> list[tuple[tuple[str, Response], ...]]:
    split = _one_turn_per_item if env.separate_turns else _single_turn
    arrays = (attempts.item, attempts.logp, attempts.length, attempts.truncated)
    rows = zip(*(x.tolist() for x in arrays), strict=True)
    return [split(items[:n], logp[:n], truncated) for items, logp, n, truncated in rows]


def _single_turn(
    items: Sequence[int], logp: Sequence[float], truncated: bool
) -> tuple[tuple[str, Response], ...]:
    finish_reason = "length" if truncated else "end"
    action = Response(tuple(items), tuple(logp), OBSERVATION, finish_reason=finish_reason)
    return (("", action),)


def _one_turn_per_item(
    items: Sequence[int], logp: Sequence[float], truncated: bool
) -> tuple[tuple[str, Response], ...]:
    actions = zip(items, logp, strict=True)
    return tuple(("", Response((item,), (value,), OBSERVATION)) for item, value in actions)
