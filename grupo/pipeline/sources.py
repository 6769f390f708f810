"""Task sources that refer to an earlier stage of their pipeline by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from grupo.core.component import component, component_fields, is_component, walk
from grupo.core.ranges import NonNegativeInt
from grupo.core.types import Task
from grupo.pipeline.collect import ROWS_FILE
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
    """A task source that refers to an earlier stage of its pipeline.

    When the earlier stage has ended, the pipeline puts the source that `resolve` returns in its
    place. `load` of the `StageSource` itself raises `ConfigError`.
    """

    @property
    def stage(self) -> str:
        """Name of the stage."""
        ...

    @property
    def expected_output_name(self) -> str:
        """The `output_name` of the kind of stage to which the source may refer."""
        ...

    @property
    def allowed(self) -> str:
        """The kind of stage to which the source may refer, such as "a CollectStage"."""
        ...

    def resolve(self, file: Path, recipe: Recipe) -> TaskSource:
        """The source of the tasks after the stage has ended.

        Args:
            file: The file that the earlier stage wrote.
            recipe: The recipe of the earlier stage.
        """
        ...


@component
class CollectedTasks:
    """The rows that a `CollectStage` wrote, as tasks with columns such as `chosen`.

    Args:
        stage: Name of the stage.
        columns: The names of the columns with the prompt, the answer and the source.
    """

    stage: str
    columns: Columns = Columns()

    @property
    def expected_output_name(self) -> str:
        return ROWS_FILE

    @property
    def allowed(self) -> str:
        return "a CollectStage"

    def resolve(self, file: Path, recipe: Recipe) -> TaskSource:
        return DatasetTasks(str(file), self.columns)

    def load(self) -> Sequence[Task]:
        raise unresolved_error(self)


@component
class SurveyedTasks:
    """A selection among the training tasks that a `SurveyStage` surveyed.

    Args:
        stage: Name of the stage.
        selection: Selects tasks by the rows of the survey: `Between("pass_rate", 0.2, 0.625)`.
    """

    stage: str
    selection: Selection

    @property
    def expected_output_name(self) -> str:
        return SURVEY_FILE

    @property
    def allowed(self) -> str:
        return "a SurveyStage"

    def resolve(self, file: Path, recipe: Recipe) -> TaskSource:
        return Selected(as_task_source(recipe.tasks), str(file), self.selection)

    def load(self) -> Sequence[Task]:
        raise unresolved_error(self)


@component
class DrawnEvalTasks:
    """The tasks that a run with the seed `seed` sets aside from `tasks` for evaluation.

    A later round of a pipeline has a seed of its own, but is evaluated on the tasks of the first
    round. Its recipe has this source, with the seed of the first round, as its `eval_tasks`.

    Args:
        tasks: Source of the training tasks.
        count: Number or share of the evaluation tasks, as `Recipe.eval_tasks`.
        seed: Seed of the run.
    """

    tasks: TaskSource
    count: NonNegativeInt | EvalShare
    seed: int

    def load(self) -> Sequence[Task]:
        _, eval_tasks = split_tasks(self.tasks, self.count, self.seed)
        return eval_tasks


def unresolved_error(source: StageSource) -> ConfigError:
    """The error for a source that is read outside a pipeline."""
    return ConfigError(
        f"tasks: {source!r} exists only in a pipeline, once its stage {source.stage!r} has ended."
    )


def task_sources_from_stages(recipe: Recipe) -> list[StageSource]:
    """The task sources of a recipe that refer to stages."""
    parts = walk((recipe.tasks, recipe.eval_tasks))
    return [part for part in parts if isinstance(part, StageSource)]


def with_resolved_task_sources(value: Any, resolve: Callable[[StageSource], TaskSource]) -> Any:
    """The value with each `StageSource` inside it replaced.

    Args:
        value: A task source, or another field of a recipe.
        resolve: Returns the task source that replaces a `StageSource`.
    """
    if isinstance(value, StageSource):
        return with_resolved_task_sources(resolve(value), resolve)
    if isinstance(value, tuple):
        return tuple(with_resolved_task_sources(item, resolve) for item in value)
    if not is_component(value):
        return value
    fields = component_fields(value)
    resolved = {name: with_resolved_task_sources(field, resolve) for name, field in fields.items()}
    changed = {name: field for name, field in resolved.items() if field is not fields[name]}
    return replace(value, **changed) if changed else value
