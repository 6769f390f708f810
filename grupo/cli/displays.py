"""The displays and loggers of a run, and toy models, which show their own training."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from grupo.recipe import Recipe
from grupo.report.loggers import selected_loggers
from grupo.report.progress_bar import ProgressDisplay
from grupo.toy import quickstart
from grupo.training.callbacks import Callback, CallbackList
from grupo.util.console import out


def make_callback(folder: Path, *, verbose: bool, **loggers: bool) -> Callback:
    """The display and the loggers of a run.

    Args:
        folder: The folder of the run.
        verbose: Print all main metrics of a step.
        loggers: Whether each logger is used, by its name.
    """
    display = ProgressDisplay(out, verbose=verbose)
    return CallbackList([display, *selected_loggers(folder, **loggers)])


def callback_factory(*, verbose: bool, **loggers: bool) -> Callable[[Path], Callback]:
    """A function that returns the display and the loggers of a run, from the folder of the run."""
    return partial(make_callback, verbose=verbose, **loggers)


def ensure_toy_model(recipe: Recipe, callback: Callback) -> None:
    """Train a toy model if the recipe needs it, after all checks that need no model."""
    quickstart.ensure_toy_model(recipe, callback)
