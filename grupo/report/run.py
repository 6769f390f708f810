"""A run as a Python object: what `train` returns, and what an existing folder is opened as."""

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from grupo.config.success import with_default_reward_term
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.report import run_html
from grupo.report.read_run import Record, check_run_folder, read_metrics, read_summary
from grupo.report.rollouts import RolloutFilter, select_rollouts
from grupo.report.step_line import format_count
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError


class Run:
    """A run, finished or not.

    Args:
        folder: The folder of the run.
        trained_policy: The policy, if it was trained by this process.

    Raises:
        ConfigError: The folder holds no run.
    """

    def __init__(self, folder: str | Path, trained_policy: Policy | None = None) -> None:
        self.folder = check_run_folder(Path(folder))
        self.trained_policy = trained_policy

    @property
    def summary(self) -> Record:
        """The contents of `summary.json`; empty while the run has not finished."""
        return read_summary(self.folder)

    @property
    def recipe(self) -> Recipe:
        """The recipe; objects that were in memory are placeholders."""
        return RunFolder.open(self.folder).recipe

    @property
    def metrics(self) -> tuple[Mapping[str, float], ...]:
        """The metrics of every step."""
        return read_metrics(self.folder)

    @cached_property
    def policy(self) -> Policy:
        """The trained policy: this process's, or that of the newest checkpoint.

        Raises:
            ConfigError: The run began with a model in memory, in another process.
        """
        return self.trained_policy or load_policy(self.folder)[0]

    def export(self, folder: str | Path, *, merge: bool = True) -> None:
        """Write the trained model as a folder that transformers loads.

        Args:
            folder: A new folder.
            merge: Merge LoRA adapters into the model; otherwise they are written separately.
        """
        path = Path(folder)
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            raise ConfigError(f"folder: {str(folder)!r} exists. Name another folder.")
        self.policy.export(path, merge=merge)

    def rollouts(
        self,
        step: int | None = None,
        *,
        best: int | None = None,
        worst: int | None = None,
        limit: int = 10,
    ) -> list[Any]:
        """Records of rollouts, as `grupo rollouts` prints them.

        Args:
            step: Only those of one step, from 1.
            best: So many with the highest reward.
            worst: So many with the lowest reward.
            limit: Number of rollouts at most, without `best` and `worst`.
        """
        rollout_filter = RolloutFilter(step)
        records = select_rollouts(self.folder, rollout_filter, best=best, worst=worst, limit=limit)
        return list(records)

    @property
    def success(self) -> str:
        """The criterion of success in words."""
        recipe = self.recipe
        return str(with_default_reward_term(recipe.evaluation.success, recipe.env))

    def __repr__(self) -> str:
        metrics = self.metrics
        reward = metrics[-1].get("reward/mean", math.nan) if metrics else math.nan
        status = "finished" if self.summary else "not finished"
        steps = format_count(len(metrics), "step")
        return f"<Run {self.folder}: {status}, {steps}, reward {reward:.3g}>"

    def _repr_html_(self) -> str:
        return run_html.run_html(self.folder)
