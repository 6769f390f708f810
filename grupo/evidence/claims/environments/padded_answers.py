"""Padded answers: filler tokens lengthen an answer without any effect on its correctness."""

import numpy as np

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.evidence.claims.environments.tabular import Attempts, Scores, TabularEnv, one_hot

POSITIONS_PER_FEATURE = 4  # positions within an answer that share a feature


@component
class PaddedAnswers:
    """An answer is correct if its symbols are the task's, in order, before it ends within a limit.

    The items are the symbols, then a filler, then the end token. The policy observes the task, the
    number of symbols so far and the position. Task k needs 1 + k mod `max_depth` symbols.

    Args:
        num_tasks: Number of tasks.
        num_symbols: Number of different symbols.
        max_depth: Symbols of the longest answer.
        max_length: Limit of an answer in tokens, fillers and end token included.
        filler_logit: Logit of the filler before training; that of a wrong symbol is 0.
    """

    num_tasks: PositiveInt = 16
    num_symbols: PositiveInt = 4
    max_depth: PositiveInt = 4
    max_length: PositiveInt = 24
    filler_logit: float = 1.0

    @property
    def _levels(self) -> int:
        """Values that the number of symbols so far can take; it is counted up to one too many."""
        return self.max_depth + 2

    def __call__(self, seed: int) -> TabularEnv:
        rng = np.random.default_rng(seed)
        task, progress, position = self._cell_parts()
        depth = 1 + np.arange(self.num_tasks) % self.max_depth
        answer = rng.integers(0, self.num_symbols, (self.num_tasks, self._levels))
        skill = rng.uniform(0.0, 1.5, self.num_tasks)
        target = answer[task, progress]
        finished = progress >= depth[task]
        correct_item = np.where(finished, self.num_symbols + 1, target)
        preferred = 2 * one_hot(correct_item, self.num_symbols + 2) - 1
        shape = (self.num_tasks, self._levels, self.max_length)
        first_cell = np.ravel_multi_index((np.arange(self.num_tasks), 0, 0), shape)
        return TabularEnv(
            first_cell,
            self._next_cells(task, progress, position),
            task * self._levels + progress,
            self._common_features(position, finished),
            self._prior(target, finished, skill[task]),
            preferred,
            self.max_length,
            lambda attempts, rng: self._score(attempts, answer, depth),
        )

    def _cell_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Task, number of symbols so far and position of each cell."""
        shape = (self.num_tasks, self._levels, self.max_length)
        task, progress, position = np.unravel_index(np.arange(np.prod(shape)), shape)
        return task, progress, position

    def _next_cells(
        self, task: np.ndarray, progress: np.ndarray, position: np.ndarray
    ) -> np.ndarray:
        shape = (self.num_tasks, self._levels, self.max_length)
        later = (position + 1).clip(max=self.max_length - 1)
        more = (progress + 1).clip(max=self._levels - 1)
        after_symbol = np.ravel_multi_index((task, more, later), shape)
        after_filler = np.ravel_multi_index((task, progress, later), shape)
        ended = np.full(len(task), -1)
        return np.stack([*[after_symbol] * self.num_symbols, after_filler, ended], axis=1)

    def _common_features(self, position: np.ndarray, finished: np.ndarray) -> np.ndarray:
        span = position // POSITIONS_PER_FEATURE
        features = [one_hot(finished.astype(int), 2), one_hot(span, int(span.max()) + 1)]
        return np.concatenate(features, axis=1)

    def _prior(self, target: np.ndarray, finished: np.ndarray, skill: np.ndarray) -> np.ndarray:
        prior = one_hot(target, self.num_symbols + 2) * skill[:, None]
        prior[finished, : self.num_symbols] = -1.0
        prior[:, self.num_symbols] = self.filler_logit
        prior[:, self.num_symbols + 1] = np.where(finished, 0.0, -1.5)
        return prior

    def _score(self, attempts: Attempts, answer: np.ndarray, depth: np.ndarray) -> Scores:
        task = attempts.task[:, None]
        progress = attempts.cell // self.max_length % self._levels
        is_symbol = (attempts.item < self.num_symbols) & attempts.mask
        beyond = progress >= depth[task]
        wrong = is_symbol & (beyond | (attempts.item != answer[task, progress]))
        num_symbols = is_symbol.sum(1)
        complete = ~attempts.truncated & (num_symbols == depth[attempts.task])
        correct = (complete & ~wrong.any(1)).astype(float)
        filler = (attempts.item == self.num_symbols) & attempts.mask
        repeated = np.zeros_like(filler)
        repeated[:, 1:] = filler[:, 1:] & filler[:, :-1]
        return Scores(correct, correct, {"correct": correct}, {"repeated": repeated.astype(float)})
