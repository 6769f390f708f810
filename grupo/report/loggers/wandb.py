"""A run's metrics for Weights & Biases."""

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
from grupo.report.optional_deps import optional_dependency

PROJECT = "grupo"
FLUSH_SECONDS = 0.5  # seconds until what was logged is on disk: what a killed run loses there


class WandbLogger(MetricLogger):
    """Writes into `wandb/` of the run's folder, and sends it unless `WANDB_MODE` is offline.

    Who is not logged in, or has no network, gets the same offline, and one line that says so.
    Metrics and the recipe are sent, texts of rollouts are not. Raises `ConfigError` where wandb is not
    installed.
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
        self.progress.save_next_step(self.progress.next_step)  # and the folder is there
        try:
            self.run = self._init_run(recipe)
        except self.wandb.errors.Error as error:
            self.run = self._init_run(recipe, mode="offline")
            why = str(error).splitlines()[0]
            self.print_line(f"wandb: offline; `wandb sync {self.run.dir}/..` sends it later. {why}")
        return self.progress.next_step

    def write(self, step: int, metrics: MetricValues) -> None:
        self.run.log(dict(metrics), step=step, commit=True)
        self.progress.save_next_step(step + 1)

    def close(self) -> None:
        self.run.finish()

    def _init_run(self, recipe: Recipe, **how: Any) -> Any:
        quiet = {"console": "off", "silent": True, "disable_git": True, "login_timeout": 15}
        known = self.wandb.Settings.model_fields
        soon = {name: FLUSH_SECONDS for name in known if name == "x_transaction_log_flush_interval"}
        return self.wandb.init(
            project=PROJECT,
            name=self.folder.name,
            id=self.progress.name,
            dir=str(self.folder),
            config=recipe_config(recipe),
            resume="allow",
            reinit="create_new",  # a run that the user has open is none of ours
            settings=self.wandb.Settings(**quiet, **soon),
            **how,
        )
