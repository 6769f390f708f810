"""Tabular environments: transitions, features and scores as arrays, so that steps are vectorised.

Letters: K tasks, S cells (what the policy observes before an action), A items (the alphabet),
F features, R rollouts, T actions of the longest rollout.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attempts:
    """R rollouts of a tabular environment, not scored.

    Args:
        task: Task of each rollout (R,).
        group: Group of each rollout (R,).
        cell: Cell before each action (R, T).
        item: Item of each action (R, T).
        logp: Log-probability of each action (R, T).
        length: Number of actions of each rollout (R,); entries beyond it mean nothing.
        truncated: True where the length limit ended the rollout (R,).
    """

    task: Ints
    group: Ints
    cell: Ints
    item: Ints
    logp: Floats
    length: Ints
    truncated: NDArray[np.bool_]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True for the actions that were taken (R, T)."""
        return np.arange(self.item.shape[1]) < self.length[:, None]


@dataclass(frozen=True)
class Scores:
    """The scores of R rollouts.

    Args:
        correct: 1 where the rollout solves its task, else 0 (R,): evaluation counts these.
        reward: Training reward (R,), which may be noisy or have further terms.
        terms: Reward terms by name (R,).
        step_values: Numbers per action by name (R, T).
    """

    correct: Floats
    reward: Floats
    terms: Mapping[str, Floats] = field(default_factory=dict)
    step_values: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class TabularEnv:
    """An environment whose observations are cells of a table.

    Args:
        first_cell: Cell of each task's first action (K,).
        next_cell: Cell after each item (S, A); -1 ends the rollout.
        own: Row of the policy's table that belongs to each cell alone or to few cells (S,).
        common: Features of each cell that many cells share (S, F): they learn together.
        prior: Logits of the policy before training (S, A).
        preferred: 1 for the items that an optimal policy takes, -1 for the others (S, A).
        max_length: Largest number of actions.
        score: Scores rollouts; the generator draws noise.
        separate_turns: Every action is a turn of its own, with an observation before the next.
    """

    first_cell: Ints
    next_cell: Ints
    own: Ints
    common: Floats
    prior: Floats
    preferred: Floats
    max_length: int
    score: Callable[[Attempts, np.random.Generator], Scores]
    separate_turns: bool = False

    @property
    def num_tasks(self) -> int:
        """K, the number of tasks."""
        return len(self.first_cell)


class EnvBuilder(Protocol):
    """The description of an environment, which draws its tasks from a seed."""

    def __call__(self, seed: int, /) -> TabularEnv: ...


def sample(
    env: TabularEnv, logp: Floats, task: Ints, group: Ints, rng: np.random.Generator
) -> Attempts:
    """Sample a rollout for each entry of `task`.

    Args:
        env: The environment.
        logp: Log-probability of each item in each cell (S, A).
        task: Task of each rollout (R,).
        group: Group of each rollout (R,).
        rng: Draws one number per rollout and position, whether the rollout has ended or not.
    """
    cumulated = np.exp(logp).cumsum(1)
    uniform = rng.random((env.max_length, len(task)))
    cells = np.zeros((len(task), env.max_length), dtype=np.int64)
    items = np.zeros_like(cells)
    length = np.zeros(len(task), dtype=np.int64)
    cell = env.first_cell[task]
    running = np.ones(len(task), dtype=bool)
    for t, u in enumerate(uniform):
        item = (cumulated[cell] < u[:, None]).sum(1).clip(max=logp.shape[1] - 1)
        cells[:, t] = cell
        items[:, t] = item
        length += running
        following = env.next_cell[cell, item]
        running = running & (following >= 0)
        cell = np.where(running, following, cell)
    return Attempts(task, group, cells, items, logp[cells, items], length, running)


def one_hot(index: Ints, count: int) -> Floats:
    """Rows of the identity matrix (S, count)."""
    return np.eye(count)[index]
