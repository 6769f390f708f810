"""The pipeline: a sequence of stages, as data that can be written to a file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from annotated_types import Interval

from grupo.core.component import component
from grupo.core.limits import ROUNDS, STAGES
from grupo.pipeline.export import EXPORT_FOLDER, export_stages_read_by
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.sources import task_sources_from_stages
from grupo.pipeline.stages import OWN_POLICY, ExportStage, PipelineStage
from grupo.recipe import Recipe
from grupo.storage.pipeline_dirs import stage_path
from grupo.util.errors import ConfigError, suggest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ALLOWED_NAMES = (
    "letters, digits, _ and -, at most 64 characters, beginning with a letter or digit; not the"
    " name of a field of Recipe or Pipeline"
)
LAST_CHECKPOINT = "last"


@component
class Pipeline:
    """Stages that run one after another in one folder, each from the weights of earlier stages.

    A stage whose `start` is `OWN_POLICY` runs from the policy of its own recipe instead.

    Args:
        stages: The stages, in order.
        rounds: Number of times that the sequence runs. Each round uses different seeds. A stage
            without `start` continues from the stage before it. The first stage continues from the
            last stage of the round before; in the first round, it runs from its own policy.
    """

    stages: tuple[PipelineStage, ...]
    rounds: Annotated[int, Interval(ge=1, le=ROUNDS.maximum)] = 1

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError('Pipeline.stages: (). Allowed: one or more, as Stage("sft", recipe).')
        if len(self.stages) > STAGES.maximum:
            raise ConfigError(f"Pipeline.stages: {len(self.stages):,}. Allowed: {STAGES.allowed}.")
        self._check_names()
        for index, stage in enumerate(self.stages):
            for name in _start_stage_names(stage):
                self._check_is_earlier(index, "start", name)
            self._set_recipe_of_export(index)
            for field, name in _recipe_stage_names(self.stages[index].recipe):
                self._check_is_earlier(index, field, name)
            self._check_condition(index)

    @property
    def names(self) -> list[str]:
        """The names of the stages, in order."""
        return [stage.name for stage in self.stages]

    def stage(self, name: str) -> PipelineStage:
        """The stage with this name."""
        return next(stage for stage in self.stages if stage.name == name)

    def start_of(self, index: int, round_number: int = 1) -> str | WeightMerge:
        """The start of a stage: a reference to another stage, a merge, or `OWN_POLICY`.

        `OWN_POLICY` is the policy of the recipe of the stage.

        Args:
            index: Index of the stage in `stages`.
            round_number: Number of the round, from 1.
        """
        start = self.stages[index].start
        if start is not None:
            return start
        if index:
            return self.names[index - 1]
        return self.names[-1] if round_number > 1 else OWN_POLICY

    def _check_names(self) -> None:
        reserved = {field.name for field in (*fields(Recipe), *fields(self))}
        seen: set[str] = set()
        for name in self.names:
            option = name.replace("-", "_")  # the stage's name in options such as --sft.max-steps
            if not NAME.fullmatch(name) or option in reserved:
                raise ConfigError(f"Pipeline.stages: {name!r}. Allowed as a name: {ALLOWED_NAMES}.")
            if option in seen:
                raise ConfigError(
                    f"Pipeline.stages: two stages are called {name!r}. Allowed: each name once,"
                    " where - and _ count as equal."
                )
            seen.add(option)

    def _check_is_earlier(self, index: int, field: str, name: str) -> None:
        """Raise `ConfigError` unless `name` is the name of an earlier stage.

        Args:
            index: Index of the stage in whose recipe or `start` the name occurs.
            field: The field in which the name occurs, for the message.
            name: The name.
        """
        earlier_names = self.names[:index]
        if name in earlier_names:
            return
        stage_name = self.names[index]
        where = f"Pipeline.stages: {stage_name!r}: {field}: {name!r}"
        if name in self.names:
            problem = "the stage itself" if name == stage_name else "a later stage"
            allowed = ", ".join(earlier_names) or "no stage, because there is no earlier stage"
            raise ConfigError(f"{where} is {problem}. Allowed: {allowed}.")
        raise ConfigError(
            f"{where} is not the name of an earlier stage. {suggest(name, earlier_names)}"
        )

    def _set_recipe_of_export(self, index: int) -> None:
        """Give an export stage the recipe of the stage whose policy it exports."""
        stage, start = self.stages[index], self.start_of(index)
        if not isinstance(stage, ExportStage):
            return
        if not isinstance(start, str) or start == OWN_POLICY:
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: start: {start!r}. Allowed for an ExportStage:"
                " one earlier stage."
            )
        if stage.recipe is None:
            recipe = self.stage(parse_reference(start).stage).recipe
            stages = (
                *self.stages[:index],
                replace(stage, recipe=recipe),
                *self.stages[index + 1 :],
            )
            object.__setattr__(self, "stages", stages)

    def _check_condition(self, index: int) -> None:
        """Raise `ConfigError` if a stage has `when` and does not start from exactly one stage."""
        stage, start = self.stages[index], self.start_of(index)
        if stage.when and (isinstance(start, WeightMerge) or start == OWN_POLICY):
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: when: {stage.when!r}. Allowed for a stage that"
                " starts from one other stage, because the condition reads the evaluation of that"
                " stage."
            )


@dataclass(frozen=True)
class StageExecution:
    """The execution of a stage in one of the rounds.

    Args:
        stage: The stage.
        start: Start of the stage in this round, as `Pipeline.start_of` returns it.
        round_number: Number of the round, from 1.
        position: Position of the execution in the whole pipeline, from 1.
        folder: Folder of the stage in this round.
    """

    stage: PipelineStage
    start: str | WeightMerge
    round_number: int
    position: int
    folder: Path


def stage_executions(pipeline: Pipeline, root: Path) -> Iterator[StageExecution]:
    """The executions of all stages in all rounds, in order.

    Args:
        pipeline: The pipeline.
        root: The folder of the pipeline.
    """
    position = 0
    for round_number in range(1, pipeline.rounds + 1):
        for index, stage in enumerate(pipeline.stages):
            position += 1
            folder = stage_path(root, stage.name, round_number, pipeline.rounds)
            start = pipeline.start_of(index, round_number)
            yield StageExecution(stage, start, round_number, position, folder)


class StageReference(NamedTuple):
    """A reference to a stage, as `PipelineStage.start` holds it in text.

    Args:
        stage: Name of the stage.
        checkpoint: "last", "best" or the number of a step.
    """

    stage: str
    checkpoint: str


def parse_reference(reference: str) -> StageReference:
    """The name of the stage and the checkpoint in a reference.

    >>> parse_reference("sft@best"), parse_reference("sft").checkpoint
    (StageReference(stage='sft', checkpoint='best'), 'last')
    """
    name, _, checkpoint = reference.partition("@")
    return StageReference(name, checkpoint or LAST_CHECKPOINT)


def start_references(start: str | WeightMerge) -> tuple[str, ...]:
    """The references in `PipelineStage.start`, such as "sft@best"; () for `OWN_POLICY`."""
    if isinstance(start, WeightMerge):
        return start.references
    return () if start == OWN_POLICY else (start,)


def _start_stage_names(stage: PipelineStage) -> Iterator[str]:
    """The names of the stages in `stage.start`; none if it is None or `OWN_POLICY`.

    Raises:
        ConfigError: A reference has a checkpoint that is neither "last", "best" nor a step.
    """
    for reference in start_references(stage.start or OWN_POLICY):
        name, checkpoint = parse_reference(reference)
        if checkpoint not in (LAST_CHECKPOINT, "best") and not checkpoint.isdecimal():
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: start: {reference!r}."
                f" Allowed: {name!r}, '{name}@best' or '{name}@STEP'."
            )
        yield name


def _recipe_stage_names(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Pairs (field, stage name), for each field of the recipe that refers to a stage.

    Two kinds of fields refer to a stage: task sources, which load tasks that the stage wrote, and
    models that the stage exported.
    """
    for task_source in task_sources_from_stages(recipe):
        yield f"tasks: {type(task_source).__name__}", task_source.stage
    for name in export_stages_read_by(recipe):
        yield "model", name


def check_stage_outputs(pipeline: Pipeline) -> None:
    """Raise `ConfigError` if a recipe refers to a stage that does not write what the recipe reads.

    `output_name` is the name of the file or folder that a stage writes: a model (`ExportStage`),
    solve counts of tasks (`SurveyStage`) or rows made of rollouts (`CollectStage`).
    """
    for stage in pipeline.stages:
        for name in export_stages_read_by(stage.recipe):
            if pipeline.stage(name).output_name != EXPORT_FOLDER:
                raise ConfigError(
                    f"{stage.name}: model: 'stage:{name}' refers to a"
                    f" {type(pipeline.stage(name)).__name__}. Allowed: an ExportStage."
                )
        for task_source in task_sources_from_stages(stage.recipe):
            writing_stage = pipeline.stage(task_source.stage)
            if writing_stage.output_name != task_source.expected_output_name:
                raise ConfigError(
                    f"{stage.name}: tasks: {task_source!r} refers to a"
                    f" {type(writing_stage).__name__}. Allowed: {task_source.allowed}."
                )
