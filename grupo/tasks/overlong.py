"""Prompts that leave no room for an answer: refused, dropped or truncated."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from grupo.core.types import Task
from grupo.core.validation import DemonstrationLimit, PromptLimit
from grupo.tasks.base import LazyTasks
from grupo.tasks.split import TrainingTasks
from grupo.util.errors import ConfigError

MAX_LISTED = 5  # prompts that a message names
MAX_GENERATED = 2000  # generated tasks that are measured; of other sources, all are


@dataclass(frozen=True)
class OverlongPrompts:
    """The prompts that leave no room for an answer.

    Args:
        sources: The training tasks and the evaluation tasks.
        lengths: The length in words of each prompt that is too long, by its index; by source.
        limit: The largest prompt.
    """

    sources: Sequence[Sequence[Task]]
    lengths: Sequence[Mapping[int, str]]
    limit: PromptLimit | DemonstrationLimit

    @property
    def summary(self) -> str:
        """Their number, and file and line of the first ones."""
        count = sum(map(len, self.lengths))
        total = sum(map(len, self.sources))
        names = [self._name(tasks, i, length) for tasks, i, length in islice(self, MAX_LISTED)]
        more = "; …" * (count > MAX_LISTED)
        return (
            f"{count} of {total} {self.limit.problem}: {'; '.join(names)}{more}."
            f" Allowed: {self.limit.allowed}."
        )

    def __iter__(self) -> Iterator[tuple[Sequence[Task], int, str]]:
        for tasks, lengths in zip(self.sources, self.lengths, strict=True):
            for index, length in lengths.items():
                yield tasks, index, length

    def _name(self, tasks: Sequence[Task], index: int, length: str) -> str:
        task = tasks[index]
        return f"{task.location or f'task {task.key}, {str(task.prompt)[:60]!r}'} ({length})"


class OverlongHandler(Protocol):
    """Decides about prompts that leave no room for an answer."""

    def __call__(self, prompts: OverlongPrompts, /) -> tuple[Sequence[Sequence[Task]], str]:
        """The sources without such prompts, and a message for the user."""
        ...


def error(prompts: OverlongPrompts) -> tuple[Sequence[Sequence[Task]], str]:
    """Raise `ConfigError`: the run does not start."""
    raise ConfigError(
        f"tasks: {prompts.summary} {prompts.limit.remedy} --overlong drop or --overlong truncate,"
        " which shortens the longest message from its beginning."
    )


def drop(prompts: OverlongPrompts) -> tuple[Sequence[Sequence[Task]], str]:
    """Leave the tasks out."""
    pairs = list(zip(prompts.sources, prompts.lengths, strict=True))
    kept = [[i for i in range(len(tasks)) if i not in lengths] for tasks, lengths in pairs]
    for tasks, indices in zip(prompts.sources, kept, strict=True):
        if tasks and not indices:
            raise ConfigError(f"overlong: drop would leave no task. {prompts.summary}")
    sources = [
        _select(tasks, indices) if lengths else tasks
        for (tasks, lengths), indices in zip(pairs, kept, strict=True)
    ]
    return sources, f"Dropped: {prompts.summary}"


def truncate(prompts: OverlongPrompts) -> tuple[Sequence[Sequence[Task]], str]:
    """Shorten the prompt's text, or its longest message, from the beginning."""
    for tasks, index, _ in prompts:
        prompts.limit.truncate(tasks[index])  # raises for one that cannot be shortened enough
    sources = [
        _truncate(tasks, lengths, prompts.limit) if lengths else tasks
        for tasks, lengths in zip(prompts.sources, prompts.lengths, strict=True)
    ]
    return sources, f"Truncated from the beginning: {prompts.summary}"


def fit_prompts(
    handler: OverlongHandler, limit: PromptLimit | DemonstrationLimit, *sources: Sequence[Task]
) -> tuple[Sequence[Sequence[Task]], str]:
    """Measure all prompts and apply the handler to those that leave no room for an answer.

    Args:
        handler: `error`, `drop` or `truncate`.
        limit: The largest prompt.
        sources: The tasks; of generated ones the first `MAX_GENERATED` are measured.

    Returns:
        The sources, and a message for the user, which is "" if all prompts fit.
    """
    lengths = [dict(_overlong(tasks, limit)) for tasks in sources]
    if not any(lengths):
        return sources, ""
    return handler(OverlongPrompts(sources, lengths, limit))


def _overlong(
    tasks: Sequence[Task], limit: PromptLimit | DemonstrationLimit
) -> Iterator[tuple[int, str]]:
    inner = tasks.tasks if isinstance(tasks, TrainingTasks) else tasks
    count = min(len(tasks), MAX_GENERATED) if isinstance(inner, LazyTasks) else len(tasks)
    for index in range(count):
        task = tasks[index]
        if not limit.surely_fits(task) and (excess := limit.describe_excess(task)):
            yield index, excess


def _select(tasks: Sequence[Task], indices: Sequence[int]) -> Sequence[Task]:
    """Some of the tasks, made when they are indexed."""
    return LazyTasks(len(indices), lambda i: tasks[indices[i]])


def _truncate(
    tasks: Sequence[Task], overlong: Collection[int], limit: PromptLimit | DemonstrationLimit
) -> Sequence[Task]:
    """The tasks; those at the indices `overlong` are truncated when they are indexed."""

    def make_task(index: int) -> Task:
        return limit.truncate(tasks[index]) if index in overlong else tasks[index]

    return LazyTasks(len(tasks), make_task)
