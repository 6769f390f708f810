"""A run's metrics for trackio, in its own store on this machine (`trackio show`)."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from grupo.recipe import Recipe
from grupo.report.loggers.base import Numbers, Progress, Sink, described, to_stderr
from grupo.report.optional_deps import needed

PROJECT = "grupo"


class Trackio(Sink):
    """Writes into the project "grupo" of trackio's store, which `TRACKIO_DIR` may say where it is.

    `folder` is the run's own: it keeps by what name trackio knows the run. Raises `Refused` where
    trackio is not installed.
    """

    tool = "trackio"

    def __init__(self, folder: Path | str, say: Callable[[str], None] = to_stderr) -> None:
        super().__init__(folder, say)
        with needed("trackio", "trackio"):
            import trackio
        self.trackio: Any = trackio

    def open(self, recipe: Recipe, step: int) -> int:
        self.progress = Progress(self.folder / "trackio" / "progress.json")
        name = f"{self.folder.name}-{self.progress.name}"
        with redirect_stdout(sys.stderr):  # it greets
            self.run: Any = self.trackio.init(
                project=PROJECT, name=name, config=described(recipe), resume="allow", embed=False
            )
        self.progress.reached(self.progress.next)
        return self.progress.next

    def write(self, step: int, numbers: Numbers) -> None:
        self.run.log(dict(numbers), step=step)
        self.progress.reached(step + 1)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self.run.finish()
