"""Loggers that send a run's metrics to TensorBoard, trackio or Weights & Biases."""

from pathlib import Path

from grupo.report.loggers.base import MetricLogger
from grupo.report.loggers.tensorboard import TensorBoardLogger
from grupo.report.loggers.trackio import TrackioLogger
from grupo.report.loggers.wandb import WandbLogger

__all__ = ["MetricLogger", "TensorBoardLogger", "TrackioLogger", "WandbLogger", "selected_loggers"]


def selected_loggers(
    run: Path, *, tensorboard: bool = False, trackio: bool = False, wandb: bool = False
) -> list[MetricLogger]:
    """The selected loggers.

    Args:
        run: the folder of the run, in which the loggers keep their files.
        tensorboard, trackio, wandb: which loggers to create.

    Raises:
        ConfigError: the package of a selected logger is not installed.
    """
    factories = (
        (tensorboard, lambda: TensorBoardLogger(run / "tensorboard")),
        (trackio, lambda: TrackioLogger(run)),
        (wandb, lambda: WandbLogger(run)),
    )
    return [make() for is_selected, make in factories if is_selected]
