"""Where a run's numbers can be looked at besides its folder, under the names of its journal."""

from pathlib import Path

from grupo.report.loggers.base import MetricLogger
from grupo.report.loggers.tensorboard import TensorBoardLogger
from grupo.report.loggers.trackio import TrackioLogger
from grupo.report.loggers.wandb import WandbLogger

__all__ = ["MetricLogger", "TensorBoardLogger", "TrackioLogger", "WandbLogger", "selected_loggers"]


def selected_loggers(
    run: Path, *, tensorboard: bool = False, trackio: bool = False, wandb: bool = False
) -> list[MetricLogger]:
    """The sinks that were asked for, for a run's folder."""
    sinks = (
        (tensorboard, lambda: TensorBoardLogger(run / "tensorboard")),
        (trackio, lambda: TrackioLogger(run)),
        (wandb, lambda: WandbLogger(run)),
    )
    return [make() for wanted, make in sinks if wanted]
