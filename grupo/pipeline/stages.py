"""The kinds of stages of a pipeline: training, survey, collection of rollouts, and export."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

from grupo.core.component import component, to_code
from grupo.core.interfaces import TurnStrategy
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0
from grupo.distributed.phase import Phase
from grupo.pipeline.collect import (
    ROWS_FILE,
    sample_task_groups,
    write_rows,
)
from grupo.pipeline.conditions import StageCondition
from grupo.pipeline.export import EXPORT_FOLDER, write_stage_model
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.rows import RowsOfGroup, best_against_worst
from grupo.pipeline.survey import SURVEY_FILE, write_stage_survey
from grupo.recipe import Recipe
from grupo.rollouts.samplers import Sampler
from grupo.training.callbacks import Callback
from grupo.training.start import create_trainer, reopen_trainer
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON

OWN_POLICY = ""  # value of `start` for a stage that uses the policy of its own recipe


class PipelineStage(Protocol):
    """A stage of a pipeline: trains a policy, or writes data that later stages read."""

    @property
    def name(self) -> str:
        """Name of the stage and of its folder."""
        ...

    @property
    def recipe(self) -> Recipe:
        """The recipe. `start` decides which weights its policy starts from."""
        ...

    @property
    def start(self) -> str | WeightMerge | None:
        """A reference "STAGE", "STAGE@best" or "STAGE@STEP", a merge, or `OWN_POLICY`.

        None stands for the previous stage.
        """
        ...

    @property
    def when(self) -> StageCondition | None:
        """A condition on the evaluation of the stage that this stage starts from.

        The stage runs if the condition holds, or if there is none.
        """
        ...

    @property
    def otherwise(self) -> Literal["stop", "skip"]:
        """If the condition does not hold, "stop" ends the pipeline and "skip" skips the stage."""
        ...

    @property
    def output_name(self) -> str:
        """Name of the file or folder that the stage writes; "" for a training stage."""
        ...

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        """Run the stage, or continue it if its folder has an interrupted run.

        Every rank calls this. A rank may return before rank 0 has written all files: the pipeline
        waits for every rank before the next stage.

        Args:
            folder: The folder of the stage; the last file that the stage writes is `summary.json`.
            recipe: The recipe of the stage, in which references to earlier stages are resolved.
            callback: Receives the events of the stage.
            ranks: The processes that run the stage together.
        """
        ...


def is_training_stage(stage: PipelineStage) -> bool:
    """Whether a stage trains a policy; another stage writes a file or folder, `output_name`."""
    return not stage.output_name


@component
class Stage:
    """A stage that trains a policy by a recipe.

    Args:
        name: Name of the stage and of its folder.
        recipe: The recipe. Its policy and its reference policy start from the weights of `start`.
        start: A reference "STAGE", "STAGE@best" or "STAGE@STEP" to an earlier stage, a merge of
            several stages, or "" for the policy of the recipe as it is. By default, the previous
            stage. The first stage of a later round starts from the last stage of the round before.
        when: A condition for running the stage, on the evaluation of the stage it starts from.
        otherwise: If the condition does not hold, "stop" ends the pipeline, "skip" skips the stage.
    """

    name: str
    recipe: Recipe
    start: str | WeightMerge | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"

    @property
    def output_name(self) -> str:
        return ""

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        if broadcast_from_rank_0(ranks, (folder / RECIPE_JSON).is_file(), Phase.STAGE_STATUS_READ):
            trainer = reopen_trainer(folder, callback, ranks)
            with trainer.lock:
                trainer.restore()
                trainer()
            return
        trainer = create_trainer(recipe, folder, callback, ranks)
        with trainer.lock:
            trainer()


@component
class SurveyStage:
    """A stage that attempts the training tasks of a recipe and writes how often each is solved.

    A later stage selects among these tasks by `SurveyedTasks`.

    Args:
        name: Name of the stage and of its folder.
        recipe: The recipe with the policy, environment, tasks and success criterion.
        attempts: Number of sampled rollouts per task.
        count: Only the first `count` tasks are used; 0 uses all tasks.
        start: As for `Stage`.
        when: As for `Stage`.
        otherwise: As for `Stage`.
    """

    name: str
    recipe: Recipe
    attempts: PositiveInt = 8
    count: NonNegativeInt = 0
    start: str | WeightMerge | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"

    @property
    def output_name(self) -> str:
        return SURVEY_FILE

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        write_stage_survey(folder, recipe, self.attempts, self.count, callback, ranks)


@component
class CollectStage:
    """A stage that samples rollouts of a recipe's training tasks and writes rows made of them.

    The rows, such as preference pairs, form a task file. A later stage reads each row as a task by
    `CollectedTasks`.

    Args:
        name: Name of the stage and of its folder.
        recipe: The recipe with the policy, environment and tasks.
        attempts: Number of sampled rollouts per task, if there is no `sampler`.
        count: Only the first `count` tasks are used; 0 uses all tasks.
        rows: Function that makes the rows of a group: `best_against_worst`, `solved` or another one
            of `grupo.pipeline.rows`. With a `strategy`, two of them need no rewards: `answers` and
            `answers_against_rejected` (the strategy's answer against responses that it rejected).
        start: As for `Stage`.
        when: As for `Stage`.
        otherwise: As for `Stage`.
        sampler: Generates the group of a task. None generates `attempts` independent rollouts.
        strategy: How the policy answers one observation, such as `Vote(8)`, in place of the
            `evaluation.turn_strategy` of the recipe; None keeps that one.

    Raises:
        ConfigError: Both a sampler and a strategy are given.
    """

    name: str
    recipe: Recipe
    attempts: PositiveInt = 8
    count: NonNegativeInt = 0
    rows: RowsOfGroup = best_against_worst
    start: str | WeightMerge | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"
    sampler: Sampler | None = None
    strategy: TurnStrategy | None = None

    def __post_init__(self) -> None:
        if self.strategy is None:
            return
        if self.sampler is not None:
            raise ConfigError(
                f"CollectStage.strategy: {to_code(self.strategy)}, and the stage has a sampler."
                " Allowed: one of them. A sampler such as GroupSampler has a turn_strategy itself."
            )
        evaluation = replace(self.recipe.evaluation, turn_strategy=self.strategy)
        object.__setattr__(self, "recipe", self.recipe.replace(evaluation=evaluation))

    @property
    def output_name(self) -> str:
        return ROWS_FILE

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        started_at = perf_counter()
        sampled_groups = sample_task_groups(
            recipe, self.attempts, self.count, callback, ranks, self.sampler
        )
        if ranks.rank == 0:  # the pipeline lets the other ranks wait for rank 0 after `run`
            seconds = perf_counter() - started_at
            write_rows(folder, recipe, sampled_groups, self.rows, callback, seconds=seconds)


@component
class ExportStage:
    """A stage that writes the model and the heads of an earlier stage, as `grupo export` does.

    A later stage refers to the folder of the model as "stage:NAME", in a field `model` or `folder`
    of its environment, method or auxiliary models: `LearnedReward("stage:exported")`.

    Args:
        name: Name of the stage and of its folder.
        start: A reference "STAGE", "STAGE@best" or "STAGE@STEP" to an earlier stage. By default,
            the previous stage.
        when: As for `Stage`.
        otherwise: As for `Stage`.
        recipe: The pipeline sets this field to the recipe of the `start` stage; leave it None.
    """

    name: str
    start: str | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"
    recipe: Any = None

    @property
    def output_name(self) -> str:
        return EXPORT_FOLDER

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        if ranks.rank == 0:  # the pipeline lets the other ranks wait for rank 0 after `run`
            write_stage_model(folder, recipe, callback)
