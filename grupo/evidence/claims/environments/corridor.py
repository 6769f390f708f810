"""Corridor: a long walk in which one wrong step moves back and only the end is rewarded."""

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.evidence.claims.environments.tabular import Attempts, Scores, TabularEnv, one_hot


@component
class Corridor:
    """The policy walks from state 0 to the last state of its task within `max_length` actions.

    In each state one item moves forward, one moves back and the others stay. States are visited
    again and again. `step/reward` is `step_outcome` at the action that reaches the end plus
    `step_progress` / num_states for each move forward, and minus that for each move back.

    Args:
        num_tasks: Number of tasks.
        num_items: Size of the alphabet.
        num_states: States before the end.
        max_length: Largest number of actions.
        forward_logit: Logit of the item that moves forward, before training; others have 0.
        step_outcome: Weight of the outcome in `step/reward`.
        step_progress: Weight of progress in `step/reward`.
        separate_turns: Every action is a turn of its own, with an observation before the next.
    """

    num_tasks: PositiveInt = 8
    num_items: PositiveInt = 5
    num_states: PositiveInt = 6
    max_length: PositiveInt = 16
    forward_logit: float = 0.3
    step_outcome: float = 1.0
    step_progress: float = 0.0
    separate_turns: bool = True

    def __call__(self, seed: int) -> TabularEnv:
        rng = np.random.default_rng(seed)
        num_cells = self.num_tasks * self.num_states
        state = np.arange(num_cells) % self.num_states
        forward, back = rng.permuted(np.tile(np.arange(self.num_items), (num_cells, 1)), axis=1)[
            :, :2
        ].T
        cell = np.arange(num_cells)
        table = np.repeat(cell[:, None], self.num_items, axis=1)
        table[cell, forward] = np.where(state == self.num_states - 1, -1, cell + 1)
        table[cell, back] = np.where(state == 0, cell, cell - 1)
        preferred = 2 * one_hot(forward, self.num_items) - 1
        return TabularEnv(
            np.arange(self.num_tasks) * self.num_states,
            table,
            cell,
            one_hot(state, self.num_states),
            self.forward_logit * one_hot(forward, self.num_items),
            preferred,
            self.max_length,
            lambda attempts, rng: self._score(attempts, table),
            self.separate_turns,
        )

    def _score(self, attempts: Attempts, table: np.ndarray) -> Scores:
        following = table[attempts.cell, attempts.item]
        reached = (following < 0) & attempts.mask
        move = np.where(following < 0, 1, following - attempts.cell) * attempts.mask
        correct = reached.any(1).astype(float)
        step_reward = self.step_outcome * reached + self.step_progress / self.num_states * move
        step_values = {
            "reward": step_reward,
            "state": attempts.cell.astype(float),
            "action": attempts.item.astype(float),
        }
        return Scores(correct, correct, {"correct": correct}, step_values)
