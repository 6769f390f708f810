"""Rewards of open answers, in the words of the policy: similarity, a guard of judges, columns.

MediX-R1 (arXiv:2602.23363) adds them to one another: 0.9 (0.575 judge + 0.375 similarity + 0.05
modality) + 0.1 format.
"""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from grupo.core.component import check_field, component
from grupo.core.extract_answer import Extractor, InsideTagOrWhole
from grupo.core.ranges import NonEmptyString, PositiveInt, Probability
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward, Reward, SelfTimedReward, reference_text
from grupo.rewards.by_column import declared_range
from grupo.util.errors import ConfigError, suggest

TextSimilarity = Callable[[str, str], float]
BLANKS = ("__", ":", "?")
_answer = InsideTagOrWhole("answer")


@component
class TextBefore:
    """The text before the first occurrence of a marker.

    Args:
        marker: The text that follows.

    >>> TextBefore("<thinking>")("<XRAY> <thinking>…</thinking>")
    '<XRAY>'
    """

    marker: NonEmptyString

    def __call__(self, text: str) -> str | None:
        before, marker, _ = text.partition(self.marker)
        return before.strip() if marker else None


@component
class ColumnMatch(PerRolloutReward):
    """1 if the extracted text equals a column of the task in any case of letters, else 0.

    Args:
        column: Name of the column.
        extract: Finds the text in the rollout's text.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="<xray> a nodule")),))
    >>> task = Task("k", "?", columns={"modality": "<XRAY>"})
    >>> ColumnMatch("modality", TextBefore(" "))(task, [rollout])
    [1.0]
    """

    column: NonEmptyString
    extract: Extractor

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        text = self.extract(rollout.text)
        return float(text is not None and text.lower() == self._truth(task).lower())

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without the column."""
        for task in tasks:
            self._truth(task)

    def _truth(self, task: Task) -> str:
        if self.column not in task.columns:
            raise ConfigError(
                f"tasks: {task.location or task.key} has no column {self.column!r}, which"
                f" ColumnMatch reads. {suggest(self.column, task.columns)}"
            )
        return str(task.columns[self.column]).strip()


@component
class NgramCosine:
    """Cosine of the counts of two texts' runs of characters, in any case of letters.

    Words of the same stem are similar; synonyms are not, for which a function of sentence
    embeddings takes its place.

    Args:
        n: Characters of a run; a text has a space before and behind it.

    >>> round(NgramCosine()("round cell", "Round cells"), 3), NgramCosine()("cell", "bone")
    (0.858, 0.0)
    """

    n: PositiveInt = 3

    def __call__(self, a: str, b: str) -> float:
        x, y = (self._counts(text) for text in (a, b))
        norms = math.hypot(*x.values()) * math.hypot(*y.values())
        return sum(x[run] * y[run] for run in x) / norms if norms else 0.0

    def _counts(self, text: str) -> Counter[str]:
        padded = f" {text.strip().lower()} "
        return Counter(padded[i : i + self.n] for i in range(len(padded) - self.n + 1))


@component
class SimilarText(PerRolloutReward):
    """1 if the answer is similar to the reference answer, or equal, else 0.

    Args:
        similarity: Similarity of two texts, such as the cosine of their embeddings.
        threshold: The smallest similarity of similar texts.
        extract: Finds the answer in the rollout's text.
    """

    similarity: TextSimilarity = NgramCosine()
    threshold: Probability = 0.8
    extract: Extractor = _answer

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer, truth = self.extract(rollout.text), reference_text(task)
        if answer is None:
            return 0.0
        return float(answer == truth or self.similarity(answer, truth) >= self.threshold)


@component
class GuardedAnswer(SelfTimedReward):
    """The inner reward, but 0 for an answer that is none and 1 for the reference answer.

    Judges accept some texts that are no answers, such as blanks and questions. The inner reward
    scores neither these nor answers equal to the reference answer up to periods at the ends.

    Args:
        inner: The reward, such as a `Judge`.
        blanks: Texts that no answer contains.
        min_chars: Characters of the shortest answer.
        extract: Finds the answer in the rollout's text.
    """

    inner: Reward
    blanks: tuple[str, ...] = BLANKS
    min_chars: PositiveInt = 2
    extract: Extractor = _answer

    def __post_init__(self) -> None:
        check_field(self, "blanks", all(self.blanks), "texts that are not empty")

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The range of the inner reward, with 0 and 1; None if it declares none."""
        declared = declared_range(self.inner)
        return declared and (min(0.0, declared[0]), max(1.0, declared[1]))

    async def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[Any]:
        known = [self._known_score(task, rollout) for rollout in rollouts]
        unknown = [x for x, score in zip(rollouts, known, strict=True) if score is None]
        values: Any = self.inner(task, unknown) if unknown else ()
        inner = iter(await values if inspect.isawaitable(values) else values)
        return [next(inner) if score is None else score for score in known]

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a reference answer that would score 0."""
        for task in tasks:
            truth = reference_text(task).strip(".")
            if not self.is_answer(truth):
                raise ConfigError(
                    f"tasks: {task.location or task.key}: reference answer {truth!r}. Allowed by"
                    f" GuardedAnswer: at least {self.min_chars} characters, without"
                    f" {', '.join(map(repr, self.blanks))}."
                )

    def is_answer(self, text: str) -> bool:
        """Whether a text is long enough and has no blank."""
        return len(text) >= self.min_chars and not any(blank in text for blank in self.blanks)

    def _known_score(self, task: Task, rollout: Rollout) -> float | None:
        answer = (self.extract(rollout.text) or "").strip(".")
        if not self.is_answer(answer):
            return 0.0
        return 1.0 if answer == reference_text(task).strip(".") else None
