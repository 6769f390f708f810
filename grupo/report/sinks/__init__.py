"""Where a run's numbers can be looked at besides its folder, under the names of its journal."""

from pathlib import Path

from grupo.report.sinks.base import Sink
from grupo.report.sinks.tensorboard import TensorBoard
from grupo.report.sinks.trackio import Trackio
from grupo.report.sinks.wandb import Wandb

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
