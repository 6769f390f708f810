"""`grupo.train` and `grupo.resume`: training with a display, in a notebook, a script or a console.

`grupo.training.start` has the same functions without a display.
"""

from pathlib import Path

from grupo.recipe import Recipe
from grupo.report.notebook_display import NotebookDisplay
from grupo.report.progress_bar import ProgressDisplay
from grupo.report.run import Run
from grupo.training.callbacks import Callback, CallbackList, NullCallback
from grupo.training.resume.run_folder import unused_folder
from grupo.training.start import create_trainer, reopen_trainer
from grupo.util.console import out


def progress_display() -> Callback:
    """The display of this process: in a notebook it updates in place below the cell."""
    return NotebookDisplay() if out.is_jupyter else ProgressDisplay(out)


def train(
    recipe: Recipe,
    run: str | Path = "",
    callback: Callback = NullCallback(),
    *,
    display: Callback | None = None,
) -> Run:
    """Train a recipe in a new run folder, with a display of the progress.

    Args:
        recipe: Everything that the run chooses.
        run: The new folder; by default a folder under `runs/`, named by date and time.
        callback: Receives the events of the run besides the display, such as a logger.
        display: Another display; `NullCallback()` shows nothing.

    Raises:
        ConfigError: The recipe or the folder cannot be used; raised before any training.
    """
    folder = Path(run) if run else unused_folder()
    trainer = create_trainer(recipe, folder, _with_display(display, callback))
    with trainer.lock:
        trainer()
    return Run(trainer.run_folder.folder, trainer.policy)


def resume(
    run: str | Path, callback: Callback = NullCallback(), *, display: Callback | None = None
) -> Run:
    """Resume a run that was stopped at any moment; its results are those of an uninterrupted run.

    Args:
        run: The folder of the run.
        callback: Receives the events of the run besides the display, such as a logger.
        display: Another display; `NullCallback()` shows nothing.

    Raises:
        ConfigError: The folder holds no run, or one with objects that were in memory.
    """
    trainer = reopen_trainer(Path(run), _with_display(display, callback))
    with trainer.lock:
        trainer.restore()
        trainer()
    return Run(trainer.run_folder.folder, trainer.policy)


def _with_display(display: Callback | None, callback: Callback) -> Callback:
    return CallbackList([display or progress_display(), callback])
