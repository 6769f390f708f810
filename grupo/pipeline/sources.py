"""Task sources that refer to an earlier stage of their pipeline by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from grupo.core.component import component, component_fields, is_component, walk
from grupo.core.ranges import NonNegativeInt
from grupo.core.types import Task
from grupo.pipeline.collect import COLLECTION_FILE
from grupo.pipeline.survey import SURVEY_FILE
from grupo.recipe import Recipe
from grupo.tasks import Columns, DatasetTasks, EvalShare, Selected
from grupo.tasks.base import TaskSource
from grupo.tasks.in_memory import as_task_source
from grupo.tasks.selected import Selection
from grupo.tasks.split import split_tasks
from grupo.util.errors import ConfigError


@runtime_checkable
class StageSource(Protocol):
    """A task source that is known once an earlier stage has ended."""

    @property
    def stage(self) -> str:
        """Name of the stage."""
        ...

    @property
    def file_name(self) -> str:
        """Name of the file that the stage writes."""
        ...

    @property
    def allowed(self) -> str:
        """The kind of the stage in words, for messages."""
        ...

    def resolved(self, file: Path, recipe: Recipe) -> TaskSource:
        """The source, now that the stage has ended.

        Args:
            file: The file that the stage wrote.
            recipe: The recipe of the stage.
        """
        ...


@component
class CollectedTasks:
    """The tasks that a `CollectStage` collected, with its columns, such as `chosen`.

    Args:
        stage: Name of the stage.
        columns: The columns of prompt, answer and source.
    """

    stage: str
    columns: Columns = Columns()

    @property
    def file_name(self) -> str:
        return COLLECTION_FILE

    @property
    def allowed(self) -> str:
        return "a CollectStage"

    def resolved(self, file: Path, recipe: Recipe) -> TaskSource:
        return DatasetTasks(str(file), self.columns)

    def load(self) -> Sequence[Task]:
        raise unresolved(self)


@component
class SurveyedTasks:
    """The training tasks of a `SurveyStage` that its survey selects.

    Args:
        stage: Name of the stage.
        selection: The rows that are selected, such as `Between("pass_rate", 0.2, 0.625)`.
    """

    stage: str
    selection: Selection

    @property
    def file_name(self) -> str:
        return SURVEY_FILE

    @property
    def allowed(self) -> str:
        return "a SurveyStage"

    def resolved(self, file: Path, recipe: Recipe) -> TaskSource:
        return Selected(as_task_source(recipe.tasks), str(file), self.selection)

    def load(self) -> Sequence[Task]:
        raise unresolved(self)


@component
class DrawnEvalTasks:
    """The evaluation tasks that a run with another seed draws from its training tasks.

    Args:
        tasks: Source of the training tasks.
        count: Their number or share, as `Recipe.eval_tasks`.
        seed: Seed of that run.
    """

    tasks: TaskSource
    count: NonNegativeInt | EvalShare
    seed: int

    def load(self) -> Sequence[Task]:
        return split_tasks(self.tasks, self.count, self.seed)[1]


def unresolved(source: StageSource) -> ConfigError:
    """The error for a source that is read outside a pipeline."""
    return ConfigError(
        f"tasks: {source!r} is known within a pipeline only, after its stage {source.stage!r}."
    )


def stage_sources(recipe: Recipe) -> list[StageSource]:
    """The sources of a recipe that refer to stages."""
    parts = walk((recipe.tasks, recipe.eval_tasks))
    return [part for part in parts if isinstance(part, StageSource)]


def with_sources(value: Any, change: Callable[[StageSource], TaskSource]) -> Any:
    """The value with each source inside it that refers to a stage replaced."""
    if isinstance(value, StageSource):
        return with_sources(change(value), change)
    if isinstance(value, tuple):
        return tuple(with_sources(item, change) for item in value)
    if not is_component(value):
        return value
    fields = component_fields(value)
    changed = {name: with_sources(field, change) for name, field in fields.items()}
    different = {name: new for name, new in changed.items() if new is not fields[name]}
    return replace(value, **different) if different else value
