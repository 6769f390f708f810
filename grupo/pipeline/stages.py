"""The stages of a pipeline: training, surveys, collections of rollouts, exported models."""

from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt, PositiveInt
from grupo.distributed.base import Ranks
from grupo.distributed.exchange import broadcast_from_rank_0
from grupo.distributed.phase import Phase
from grupo.pipeline.collect import (
    COLLECTION_FILE,
    RowsOfGroup,
    best_against_worst,
    sample_collection,
    write_collection,
)
from grupo.pipeline.conditions import StageCondition
from grupo.pipeline.export import MODEL, write_stage_model
from grupo.pipeline.merge import Merged
from grupo.pipeline.survey import SURVEY_FILE, write_stage_survey
from grupo.recipe import Recipe
from grupo.rollouts.samplers import Sampler
from grupo.training.callbacks import Callback
from grupo.training.resume.run_dir import RECIPE
from grupo.training.trainer import create_trainer, reopen_trainer

OWN_POLICY = ""  # as a start: the policy of the stage's own recipe


class PipelineStage(Protocol):
    """A stage: it trains, or it writes data with the policy that it starts from."""

    @property
    def name(self) -> str:
        """Name of the stage and of its folder."""
        ...

    @property
    def recipe(self) -> Recipe:
        """The recipe, whose policy starts from `start`."""
        ...

    @property
    def start(self) -> str | Merged | None:
        """A stage, "STAGE@best", "STAGE@STEP", a merge, or `OWN_POLICY`; None: the stage before."""
        ...

    @property
    def when(self) -> StageCondition | None:
        """A condition on the evaluation of the stage that it starts from."""
        ...

    @property
    def otherwise(self) -> Literal["stop", "skip"]:
        """If the condition does not hold: "stop" ends the pipeline, "skip" goes on."""
        ...

    @property
    def data_file(self) -> str:
        """Name of what the stage writes; "" for one that trains, in a run's folder."""
        ...

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        """Do all work of the stage that its folder does not have yet.

        Args:
            folder: The folder of the stage; its `summary.json` is written last.
            recipe: The recipe, with start weights and tasks of earlier stages.
            callback: Receives the events of the stage.
            ranks: The processes that train together.
        """
        ...


@component
class Stage:
    """A stage that trains a recipe.

    Args:
        name: Name of the stage and of its folder.
        recipe: The recipe; its policy starts from `start`, with a new optimizer, and the reference
            policy is that start.
        start: A stage, "STAGE@best", "STAGE@STEP", a merge of several, or "": the policy of the
            recipe as it is. By default the stage before, in a later round also for the first one.
        when: A condition on the evaluation of the stage that it starts from.
        otherwise: If the condition does not hold: "stop" ends the pipeline, "skip" goes on.
    """

    name: str
    recipe: Recipe
    start: str | Merged | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"

    @property
    def data_file(self) -> str:
        return ""

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        if broadcast_from_rank_0(ranks, (folder / RECIPE).is_file(), Phase.STAGE_FOUND):
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

    `SurveyedTasks` of a later stage selects among these tasks.

    Args:
        name: Name of the stage and of its folder.
        recipe: Policy, environment, tasks and criterion of success of the attempts.
        attempts: Sampled rollouts per task.
        count: Number of tasks at most; 0: all.
        start: As for `Stage`.
        when: As for `Stage`.
        otherwise: As for `Stage`.
    """

    name: str
    recipe: Recipe
    attempts: PositiveInt = 8
    count: NonNegativeInt = 0
    start: str | Merged | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"

    @property
    def data_file(self) -> str:
        return SURVEY_FILE

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        write_stage_survey(folder, recipe, self.attempts, self.count, callback, ranks)


@component
class CollectStage:
    """A stage that samples rollouts of the training tasks of a recipe and keeps some as tasks.

    `CollectedTasks` of a later stage has one task for each row.

    Args:
        name: Name of the stage and of its folder.
        recipe: Policy, environment and tasks of the rollouts.
        attempts: Sampled rollouts per task.
        count: Number of tasks at most; 0: all.
        rows: The rows of a group: `best_against_worst`, or `solved` rollouts.
        start: As for `Stage`.
        when: As for `Stage`.
        otherwise: As for `Stage`.
        sampler: Makes the group of a task, such as `Workshop()`; None: `attempts` rollouts.
    """

    name: str
    recipe: Recipe
    attempts: PositiveInt = 8
    count: NonNegativeInt = 0
    rows: RowsOfGroup = best_against_worst
    start: str | Merged | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"
    sampler: Sampler | None = None

    @property
    def data_file(self) -> str:
        return COLLECTION_FILE

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        start = perf_counter()
        collection = sample_collection(
            recipe, self.attempts, self.count, callback, ranks, self.sampler
        )
        if ranks.rank == 0:
            seconds = perf_counter() - start
            write_collection(folder, recipe, collection, self.rows, callback, seconds=seconds)


@component
class ExportStage:
    """A stage that writes the model of an earlier one and its heads, as `grupo export` does.

    A later stage names the folder as "stage:NAME" in a field `model` or `folder` of its
    environment, method or auxiliary models: `LearnedReward("stage:exported")`.

    Args:
        name: Name of the stage and of its folder.
        start: A stage, "STAGE@best" or "STAGE@STEP". By default the stage before.
        when: As for `Stage`.
        otherwise: As for `Stage`.
        recipe: The recipe of the stage that it starts from; the pipeline sets it.
    """

    name: str
    start: str | None = None
    when: StageCondition | None = None
    otherwise: Literal["stop", "skip"] = "stop"
    recipe: Any = None

    @property
    def data_file(self) -> str:
        return MODEL

    def run(self, folder: Path, recipe: Recipe, callback: Callback, ranks: Ranks) -> None:
        if ranks.rank == 0:
            write_stage_model(folder, recipe, callback)
