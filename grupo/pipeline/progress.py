"""The position of a pipeline, which is the state of its stages' folders and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grupo.pipeline.conditions import ConditionFailedError, describe_value
from grupo.pipeline.data_stage import read_data_file
from grupo.pipeline.merge import Merged
from grupo.pipeline.pipeline import Pipeline, Visit, split_choice
from grupo.pipeline.sources import StageSource
from grupo.rollouts.eval_scores import scores_by_step
from grupo.storage import strict_json
from grupo.storage.pipeline_dirs import SUMMARY
from grupo.tasks.base import TaskSource
from grupo.training.resume.load_run import LAST, load_checkpoint
from grupo.training.resume.run_dir import RunFolder
from grupo.util.errors import ConfigError


@dataclass
class PipelineProgress:
    """The runs and data sets that the stages before the present one have left.

    Args:
        pipeline: The pipeline.
        runs: By stage, the newest run with its weights; None before any training. A stage that
            writes data or was skipped has the weights that it started from.
        data_folders: By stage, the newest folder of a finished data set.
    """

    pipeline: Pipeline
    runs: dict[str, Path | None] = field(default_factory=dict)
    data_folders: dict[str, Path] = field(default_factory=dict)

    def run_of(self, reference: str) -> tuple[Path | None, str]:
        """The run and the checkpoint that a reference stands for."""
        name, choice = split_choice(reference)
        return self.runs[name], choice

    def must_skip(self, visit: Visit) -> bool:
        """Whether the condition of a stage does not hold and the pipeline goes on without it.

        Raises:
            ConditionFailedError: It does not hold, and the pipeline ends.
        """
        when = visit.stage.when
        if not when or isinstance(visit.start, Merged):
            return False
        scores = self._scores(visit.start)
        if when(scores):
            return False
        if visit.stage.otherwise == "skip":
            return True
        value = describe_value(scores, when.metric)
        raise ConditionFailedError(
            f"{visit.stage.name}: when: {when!r} does not hold: {value} after {visit.start!r}. The"
            " finished stages are kept. A stage with otherwise='skip' is left out instead."
        )

    def record(self, visit: Visit, *, skipped: bool = False) -> None:
        """Record a stage that is finished or skipped."""
        name, stage = visit.stage.name, visit.stage
        if not skipped and not stage.data_file:
            self.runs[name] = visit.folder
            return
        start = visit.start.names[0] if isinstance(visit.start, Merged) else visit.start
        self.runs[name] = self.run_of(start)[0] if start else None
        if not skipped:
            self.data_folders[name] = visit.folder

    def resolve_source(self, source: StageSource) -> TaskSource:
        """The tasks of a stage that has ended.

        Raises:
            ConfigError: The stage was skipped.
            CorruptRun: Its file was changed.
        """
        if source.stage not in self.data_folders:
            raise ConfigError(f"tasks: {source!r}, and this stage was skipped.")
        stage = self.pipeline.stage(source.stage)
        return source.resolved(read_data_file(self.data_folders[source.stage]), stage.recipe)

    def model_folder(self, name: str) -> str:
        """The folder with the model that a stage exported.

        Raises:
            ConfigError: The stage was skipped.
            CorruptRun: A file of it was changed.
        """
        if name not in self.data_folders:
            raise ConfigError(f"model: 'stage:{name}', and this stage was skipped.")
        return str(read_data_file(self.data_folders[name]))

    def _scores(self, reference: str) -> Mapping[str, Any]:
        """The scores of the evaluation of a run at a checkpoint; empty without one."""
        run, choice = self.run_of(reference)
        if run is None:
            return {}
        summary = strict_json.from_json((run / SUMMARY).read_text())
        by_step = scores_by_step(summary["held_out"], summary["steps"])
        if choice == LAST:
            return by_step.get(summary["steps"], {})
        step = load_checkpoint(run, RunFolder.open(run).recipe, choice).step
        return by_step.get(step, {})
