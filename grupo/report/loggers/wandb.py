"""Weights & Biases logger."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import (
    LoggerProgress,
    MetricLogger,
    MetricValues,
    print_to_stderr,
    recipe_config,
)
from grupo.util.optional_deps import optional_dependency

PROJECT = "grupo"
FLUSH_SECONDS = 0.5  # seconds until a logged step is on disk: a killed run loses no more


class WandbLogger(MetricLogger):
    """Writes into `wandb/` of the run's folder and uploads it, unless `WANDB_MODE` is offline.

    Without a login or a network it logs offline and prints one line. Metrics and the recipe are
    uploaded, texts of rollouts are not.

    Args:
        folder: the run's folder.
        print_line: prints the messages of the logger.

    Raises:
        ConfigError: wandb is not installed.
    """

    tool = "wandb"

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        super().__init__(folder, print_line)
        with optional_dependency("wandb", "wandb"):
            import wandb
        self.wandb: Any = wandb

    def open(self, recipe: Recipe, step: int) -> int:
        self.progress = LoggerProgress(self.folder / "wandb" / "progress.json")
        self.progress.save_next_row(self.progress.next_row)  # also creates the folder
        try:
            self.run = self._init_run(recipe)
        except self.wandb.errors.Error as error:
            self.run = self._init_run(recipe, mode="offline")
            reason = str(error).splitlines()[0]
            command = f"wandb sync {self.run.dir}/.."
            self.print_line(f"wandb: offline; `{command}` uploads the run later. {reason}")
        self.run.define_metric("*", step_metric="step")
        return self.progress.next_row

    def write(self, row: int, step: int, metrics: MetricValues) -> None:
        self.run.log({**metrics, "step": step}, step=row, commit=True)
        self.progress.save_next_row(row + 1)

    def close(self) -> None:
        self.run.finish()

    def _init_run(self, recipe: Recipe, **options: Any) -> Any:
        quiet = {"console": "off", "silent": True, "disable_git": True, "login_timeout": 15}
        flush_setting = "x_transaction_log_flush_interval"  # newer versions of wandb only
        has_setting = flush_setting in self.wandb.Settings.model_fields
        flush = {flush_setting: FLUSH_SECONDS} if has_setting else {}
        return self.wandb.init(
            project=PROJECT,
            name=self.folder.name,
            id=self.progress.name,
            dir=str(self.folder),
            config=recipe_config(recipe),
            resume="allow",
            reinit="create_new",  # do not reuse a run that the user has open
            settings=self.wandb.Settings(**quiet, **flush),
            **options,
        )
