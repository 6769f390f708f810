"""Many modes: several different answers are correct, most of them rare under the policy."""

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.evidence.claims.environments.tabular import Attempts, Scores, TabularEnv, one_hot


@component
class ManyModes:
    """Each task accepts `num_modes` sequences of `length` items out of all possible ones.

    The policy prefers one sequence of each task from the beginning. It is one of the accepted ones,
    except in a share of the tasks, which then have rare correct answers only. The reward terms
    `cluster` and `majority` are the answer's number and whether it is its group's most frequent.

    Args:
        num_tasks: Number of tasks.
        num_items: Size of the alphabet.
        length: Items of an answer.
        num_modes: Accepted sequences of a task.
        trap_fraction: Share of the tasks whose preferred sequence is wrong.
        preference: Logit of the preferred items before training, above the others.
    """

    num_tasks: PositiveInt = 16
    num_items: PositiveInt = 6
    length: PositiveInt = 3
    num_modes: PositiveInt = 4
    trap_fraction: Probability = 0.5
    preference: float = 1.5

    def __call__(self, seed: int) -> TabularEnv:
        rng = np.random.default_rng(seed)
        num_answers = self.num_items**self.length
        answers = np.stack(
            [rng.permutation(num_answers)[: self.num_modes + 1] for _ in range(self.num_tasks)]
        )
        accepted = np.zeros((self.num_tasks, num_answers))
        np.put_along_axis(accepted, answers[:, : self.num_modes], 1.0, axis=1)
        is_trap = np.arange(self.num_tasks) < round(self.trap_fraction * self.num_tasks)
        favourite = answers[np.arange(self.num_tasks), np.where(is_trap, self.num_modes, 0)]
        cells_per_task = self._level_starts[-1]
        prior = 0.3 * rng.standard_normal((self.num_tasks, cells_per_task, self.num_items))
        self._add_path(prior, favourite, self.preference)
        preferred = self._preferred(accepted)
        num_cells = self.num_tasks * cells_per_task
        level = np.tile(np.repeat(np.arange(self.length), self._level_sizes), self.num_tasks)
        return TabularEnv(
            np.arange(self.num_tasks) * cells_per_task,
            self._next_cells(),
            np.arange(num_cells),
            one_hot(level, self.length),
            prior.reshape(num_cells, -1),
            preferred.reshape(num_cells, -1),
            self.length,
            lambda attempts, rng: self._score(attempts, accepted),
        )

    @property
    def _level_sizes(self) -> list[int]:
        """Number of prefixes of each length."""
        return [self.num_items**n for n in range(self.length)]

    @property
    def _level_starts(self) -> list[int]:
        """First cell of each level of a task's tree, and the number of cells at the end."""
        return [0, *np.cumsum(self._level_sizes).tolist()]

    def _next_cells(self) -> np.ndarray:
        cells_per_task = self._level_starts[-1]
        table = np.full((self.num_tasks, cells_per_task, self.num_items), -1)
        first = np.arange(self.num_tasks)[:, None, None] * cells_per_task
        for level in range(self.length - 1):
            start, end, _ = self._level_starts[level : level + 3]
            children = np.arange((end - start) * self.num_items).reshape(-1, self.num_items)
            table[:, start:end] = first + end + children
        return table.reshape(-1, self.num_items)

    def _add_path(self, table: np.ndarray, answer: np.ndarray, value: float) -> None:
        """Add `value` in place at the items of one answer per task."""
        for level in range(self.length):
            prefix, item = np.divmod(
                answer // self.num_items ** (self.length - 1 - level), self.num_items
            )
            table[np.arange(len(answer)), self._level_starts[level] + prefix, item] += value

    def _preferred(self, accepted: np.ndarray) -> np.ndarray:
        """1 for items after which a correct answer is possible, else -1."""
        levels = [
            accepted.reshape(self.num_tasks, size, self.num_items, -1).max(-1)
            for size in self._level_sizes
        ]
        return 2 * np.concatenate(levels, axis=1) - 1

    def _score(self, attempts: Attempts, accepted: np.ndarray) -> Scores:
        place_values = self.num_items ** np.arange(self.length)[::-1]
        answer = attempts.item @ place_values
        correct = accepted[attempts.task, answer]
        terms = {
            "correct": correct,
            "cluster": answer.astype(float),
            "majority": _is_most_frequent(answer, attempts.group),
        }
        return Scores(correct, correct, terms)


def _is_most_frequent(answer: np.ndarray, group: np.ndarray) -> np.ndarray:
    """1 for the most frequent answers of each group, ties included, else 0."""
    _, label, votes = np.unique(
        np.stack([group, answer]), axis=1, return_inverse=True, return_counts=True
    )
    own_votes = votes[label.reshape(-1)]
    most = np.zeros(group.max(initial=-1) + 1, dtype=np.int64)
    np.maximum.at(most, group, own_votes)
    return (own_votes == most[group]).astype(float)
