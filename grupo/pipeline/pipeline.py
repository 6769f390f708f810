"""A pipeline of stages as data."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.pipeline.export import MODEL, exported_stages
from grupo.pipeline.merge import Merged
from grupo.pipeline.sources import stage_sources
from grupo.pipeline.stages import OWN_POLICY, ExportStage, PipelineStage
from grupo.recipe import Recipe
from grupo.storage.pipeline_dirs import stage_path
from grupo.util.errors import ConfigError, suggest

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
ALLOWED_NAMES = "letters, digits, _ and -, at most 64, and no field of a recipe"
LAST_CHECKPOINT = "last"


@component
class Pipeline:
    """Stages that run one after another, each from the weights of earlier ones, in one folder.

    Args:
        stages: The stages, in order.
        rounds: How often the sequence runs; a later round starts from the last stage of the round
            before and has other seeds.
    """

    stages: tuple[PipelineStage, ...]
    rounds: PositiveInt = 1

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError('Pipeline.stages: (). Allowed: one or more, as Stage("sft", recipe).')
        self._check_names()
        for index, stage in enumerate(self.stages):
            for name in _start_references(stage):
                self._check_reference(index, "start:", name)
            self._set_exported_recipe(index)
            for place, name in _recipe_references(self.stages[index].recipe):
                self._check_reference(index, place, name)
            self._check_condition(index)

    @property
    def names(self) -> list[str]:
        """The names of the stages, in order."""
        return [stage.name for stage in self.stages]

    def stage(self, name: str) -> PipelineStage:
        """The stage of a name."""
        return next(stage for stage in self.stages if stage.name == name)

    def start_of(self, index: int, round_number: int = 1) -> str | Merged:
        """Start of a stage: another stage, a merge, or its own policy.

        Args:
            index: Place of the stage.
            round_number: Number of the round, from 1.
        """
        start = self.stages[index].start
        if start is not None:
            return start
        if index:
            return self.names[index - 1]
        return self.names[-1] if round_number > 1 else OWN_POLICY

    def _check_names(self) -> None:
        taken = {field.name for field in fields(Recipe)} | {field.name for field in fields(self)}
        seen: set[str] = set()
        for name in self.names:
            option = name.replace("-", "_")  # as options of the command line address it
            if not NAME.fullmatch(name) or option in taken:
                raise ConfigError(f"Pipeline.stages: {name!r}. Allowed as a name: {ALLOWED_NAMES}.")
            if option in seen:
                raise ConfigError(
                    f"Pipeline.stages: two stages are called {name!r}. Allowed: each name once."
                )
            seen.add(option)

    def _check_reference(self, index: int, place: str, name: str) -> None:
        """Raise unless a stage refers to an earlier one."""
        earlier = self.names[:index]
        if name in earlier:
            return
        own = self.names[index]
        if name in self.names:
            problem = "itself" if name == own else "later"
            raise ConfigError(
                f"Pipeline.stages: {own!r}: {place} {name!r}, which is {problem}."
                f" Allowed: {', '.join(earlier) or 'no stage, because none is before it'}."
            )
        raise ConfigError(
            f"Pipeline.stages: {own!r}: {place} {name!r}, which is no stage before it."
            f" {suggest(name, earlier)}"
        )

    def _set_exported_recipe(self, index: int) -> None:
        """Give an export stage the recipe of the stage that it starts from."""
        stage, start = self.stages[index], self.start_of(index)
        if not isinstance(stage, ExportStage):
            return
        if not isinstance(start, str) or start == OWN_POLICY:
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: start: {start!r}. Allowed for an ExportStage:"
                " one stage before it."
            )
        if stage.recipe is None:
            recipe = self.stage(split_choice(start)[0]).recipe
            stages = (
                *self.stages[:index],
                replace(stage, recipe=recipe),
                *self.stages[index + 1 :],
            )
            object.__setattr__(self, "stages", stages)

    def _check_condition(self, index: int) -> None:
        """Raise for a condition where the stage does not start from a single stage."""
        stage, start = self.stages[index], self.start_of(index)
        if stage.when and (isinstance(start, Merged) or start == OWN_POLICY):
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: when: {stage.when!r}. Allowed for a stage that"
                " starts from one other stage, whose evaluation is read."
            )


@dataclass(frozen=True)
class Visit:
    """A stage in one of the rounds.

    Args:
        stage: The stage.
        start: What it starts from.
        round_number: Number of the round, from 1.
        number: Number of the visit among all, from 1.
        folder: Folder of the stage in this round.
    """

    stage: PipelineStage
    start: str | Merged
    round_number: int
    number: int
    folder: Path


def visits(pipeline: Pipeline, root: Path) -> Iterator[Visit]:
    """All stages of all rounds, in order.

    Args:
        pipeline: The pipeline.
        root: Its folder.
    """
    number = 0
    for round_number in range(1, pipeline.rounds + 1):
        for index, stage in enumerate(pipeline.stages):
            number += 1
            folder = stage_path(root, stage.name, round_number, pipeline.rounds)
            start = pipeline.start_of(index, round_number)
            yield Visit(stage, start, round_number, number, folder)


def split_choice(reference: str) -> tuple[str, str]:
    """The stage and the checkpoint that a reference names.

    >>> split_choice("sft@best"), split_choice("sft")
    (('sft', 'best'), ('sft', 'last'))
    """
    name, _, choice = reference.partition("@")
    return name, choice or LAST_CHECKPOINT


def start_names(start: str | Merged) -> tuple[str, ...]:
    """The references in what a stage starts from; none for its own policy."""
    if isinstance(start, Merged):
        return start.names
    return (start,) if start else ()


def _start_references(stage: PipelineStage) -> Iterator[str]:
    """The stages from whose weights a stage starts."""
    for reference in start_names(stage.start or OWN_POLICY):
        name, choice = split_choice(reference)
        if choice not in (LAST_CHECKPOINT, "best") and not choice.isdecimal():
            raise ConfigError(
                f"Pipeline.stages: {stage.name!r}: start: {reference!r}."
                f" Allowed: {name!r}, '{name}@best' or '{name}@STEP'."
            )
        yield name


def _recipe_references(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The stages that a recipe names, each after the place where it does."""
    for source in stage_sources(recipe):
        yield f"tasks: {type(source).__name__} of", source.stage
    for name in exported_stages(recipe):
        yield "model of", name


def check_sources(pipeline: Pipeline) -> None:
    """Raise `ConfigError` for tasks or a model of a stage that writes none of this kind."""
    for stage in pipeline.stages:
        for name in exported_stages(stage.recipe):
            if pipeline.stage(name).data_file != MODEL:
                raise ConfigError(
                    f"{stage.name}: model: 'stage:{name}', and {name!r} is a"
                    f" {type(pipeline.stage(name)).__name__}. Allowed: an ExportStage."
                )
        for source in stage_sources(stage.recipe):
            writer = pipeline.stage(source.stage)
            if writer.data_file != source.file_name:
                raise ConfigError(
                    f"{stage.name}: tasks: {source!r}, and {source.stage!r} is a"
                    f" {type(writer).__name__}. Allowed: {source.allowed}."
                )
