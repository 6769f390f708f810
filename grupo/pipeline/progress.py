"""The progress of a pipeline, which is read from the folders of its stages and stored nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.pipeline.conditions import ConditionFailedError, describe_value
from grupo.pipeline.data_stage import read_data_file
from grupo.pipeline.merge import WeightMerge
from grupo.pipeline.pipeline import (
    Pipeline,
    StageExecution,
    parse_reference,
    start_references,
)
from grupo.pipeline.sources import StageSource
from grupo.pipeline.stages import is_training_stage
from grupo.rollouts.eval_scores import scores_by_step
from grupo.storage import strict_json
from grupo.tasks.base import TaskSource
from grupo.training.resume.load_run import LAST, load_checkpoint
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError
from grupo.util.run_files import SUMMARY_FILE


@dataclass
class PipelineProgress:
    """The runs and data folders of the stages that have ended.

    Args:
        pipeline: The pipeline.
        runs: By the name of a stage: the run whose weights a reference to the stage means. The run
            of a training stage is its own. A stage that was skipped or that writes data has the run
            that it started from, or None if no earlier stage was trained. `record` adds the runs.
        data_folders: By the name of a stage that wrote data: its folder in its last finished round.
            `record` adds the folders.
    """

    pipeline: Pipeline
    runs: dict[str, Path | None] = field(default_factory=dict)
    data_folders: dict[str, Path] = field(default_factory=dict)

    def run_and_checkpoint(self, reference: str) -> tuple[Path | None, str]:
        """The run folder and the name of the checkpoint that a reference means.

        The run folder is None as in `runs`.
        """
        name, checkpoint_name = parse_reference(reference)
        return self.runs[name], checkpoint_name

    def must_skip(self, execution: StageExecution) -> bool:
        """Whether a stage is skipped, because its condition does not hold.

        Raises:
            ConditionFailedError: The condition does not hold, and `otherwise` is "stop".
        """
        condition = execution.stage.when
        if not condition or isinstance(execution.start, WeightMerge):
            return False
        scores = self._scores(execution.start)
        if condition(scores):
            return False
        if execution.stage.otherwise == "skip":
            return True
        value = describe_value(scores, condition.metric)
        raise ConditionFailedError(
            f"{execution.stage.name}: when: {condition!r} does not hold: {value} after"
            f" {execution.start!r}. The finished stages are kept. A stage with otherwise='skip' is"
            " left out instead."
        )

    def record(self, execution: StageExecution, *, skipped: bool = False) -> None:
        """Record a stage that is finished or skipped; called for all executions in order."""
        name, stage = execution.stage.name, execution.stage
        if not skipped and is_training_stage(stage):
            self.runs[name] = execution.folder
            return
        references = start_references(execution.start)
        self.runs[name] = self.run_and_checkpoint(references[0])[0] if references else None
        if not skipped:
            self.data_folders[name] = execution.folder

    def resolve_task_source(self, source: StageSource) -> TaskSource:
        """The tasks that a source reads from a stage that has ended.

        Raises:
            ConfigError: The stage was skipped.
            CorruptRun: The file that the stage wrote was changed.
        """
        if source.stage not in self.data_folders:
            raise ConfigError(f"tasks: {source!r} refers to a stage that was skipped.")
        stage = self.pipeline.stage(source.stage)
        return source.resolve(read_data_file(self.data_folders[source.stage]), stage.recipe)

    def model_folder(self, name: str) -> str:
        """The folder with the model that a stage exported.

        Raises:
            ConfigError: The stage was skipped.
            CorruptRun: A file of the model was changed.
        """
        if name not in self.data_folders:
            raise ConfigError(f"model: 'stage:{name}' refers to a stage that was skipped.")
        return str(read_data_file(self.data_folders[name]))

    def _scores(self, reference: str) -> Mapping[str, Any]:
        """The evaluation scores of a checkpoint; empty if the checkpoint was not evaluated."""
        run, checkpoint = self.run_and_checkpoint(reference)
        if run is None:
            return {}
        summary = strict_json.from_json((run / SUMMARY_FILE).read_text())
        by_step = scores_by_step(summary["held_out"], summary["steps"])
        if checkpoint == LAST:
            return by_step.get(summary["steps"], {})
        step = load_checkpoint(run, RunFolder.open(run).recipe, checkpoint).step
        return by_step.get(step, {})
