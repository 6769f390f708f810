"""trackio logger."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
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


class TrackioLogger(MetricLogger):
    """Writes into the project "grupo" of the local trackio store (`trackio show`).

    The environment variable `TRACKIO_DIR` sets the location of the store.

    Args:
        folder: the run's folder, which keeps the run's name in trackio.
        print_line: prints the messages of the logger.

    Raises:
        ConfigError: trackio is not installed.
    """

    tool = "trackio"

    def __init__(
        self, folder: Path | str, print_line: Callable[[str], None] = print_to_stderr
    ) -> None:
        super().__init__(folder, print_line)
        with optional_dependency("trackio", "trackio"):
            import trackio
        self.trackio: Any = trackio

    def open(self, recipe: Recipe, step: int) -> int:
        self.progress = LoggerProgress(self.folder / "trackio" / "progress.json")
        name = f"{self.folder.name}-{self.progress.name}"
        with redirect_stdout(sys.stderr):  # trackio prints a greeting
            self.run: Any = self.trackio.init(
                project=PROJECT,
                name=name,
                config=recipe_config(recipe),
                resume="allow",
                embed=False,
            )
        self.progress.save_next_row(self.progress.next_row)
        return self.progress.next_row

    def write(self, row: int, step: int, metrics: MetricValues) -> None:
        self.run.log(dict(metrics), step=step)
        self.progress.save_next_row(row + 1)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self.run.finish()
