"""Where a run's numbers can be looked at besides its folder, under the names of its journal."""

from pathlib import Path

from grupo.report.loggers.base import Sink
from grupo.report.loggers.tensorboard import TensorBoard
from grupo.report.loggers.trackio import Trackio
from grupo.report.loggers.wandb import Wandb

__all__ = ["Sink", "TensorBoard", "Trackio", "Wandb", "chosen"]


def chosen(
    run: Path, *, tensorboard: bool = False, trackio: bool = False, wandb: bool = False
) -> list[Sink]:
    """The sinks that were asked for, for a run's folder."""
    sinks = (
        (tensorboard, lambda: TensorBoard(run / "tensorboard")),
        (trackio, lambda: Trackio(run)),
        (wandb, lambda: Wandb(run)),
    )
    return [make() for wanted, make in sinks if wanted]
