"""A run's metrics for Weights & Biases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import Numbers, Progress, Sink, described, to_stderr
from grupo.report.optional_deps import needed

PROJECT = "grupo"
SOON = 0.5  # seconds until what was logged is on disk: what a killed run loses there


class Wandb(Sink):
    """Writes into `wandb/` of the run's folder, and sends it unless `WANDB_MODE` is offline.

    Who is not logged in, or has no network, gets the same offline, and one line that says so.
    Metrics and the recipe are sent, texts of rollouts are not. Raises `Refused` where wandb is not
    installed.
    """

    tool = "wandb"

    def __init__(self, folder: Path | str, say: Callable[[str], None] = to_stderr) -> None:
        super().__init__(folder, say)
        with needed("wandb", "wandb"):
            import wandb
        self.wandb: Any = wandb

    def open(self, recipe: Recipe, step: int) -> int:
        self.progress = Progress(self.folder / "wandb" / "progress.json")
        self.progress.reached(self.progress.next)  # and the folder is there
        try:
            self.run = self._begin(recipe)
        except self.wandb.errors.Error as error:
            self.run = self._begin(recipe, mode="offline")
            why = str(error).splitlines()[0]
            self.say(f"wandb: offline; `wandb sync {self.run.dir}/..` sends it later. {why}")
        return self.progress.next

    def write(self, step: int, numbers: Numbers) -> None:
        self.run.log(dict(numbers), step=step, commit=True)
        self.progress.reached(step + 1)

    def close(self) -> None:
        self.run.finish()

    def _begin(self, recipe: Recipe, **how: Any) -> Any:
        quiet = {"console": "off", "silent": True, "disable_git": True, "login_timeout": 15}
        known = self.wandb.Settings.model_fields
        soon = {name: SOON for name in known if name == "x_transaction_log_flush_interval"}
        return self.wandb.init(
            project=PROJECT,
            name=self.folder.name,
            id=self.progress.name,
            dir=str(self.folder),
            config=described(recipe),
            resume="allow",
            reinit="create_new",  # a run that the user has open is none of ours
            settings=self.wandb.Settings(**quiet, **soon),
            **how,
        )
