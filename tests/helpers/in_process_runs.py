"""Training of a comparison's runs in the process of the test: a new process imports for seconds."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import pytest

from grupo.compare.experiment import RunSpec
from grupo.compare.run_status import WAITING, status_of
from grupo.compare.scheduler import (
    AllRuns,
    NullQueueCallback,
    QueueCallback,
    Resources,
    RunSelection,
    create_folder,
)
from grupo.training.start import resume_training


def train_one_by_one(
    run_specs: Sequence[RunSpec],
    resources: Resources,
    queue_callback: QueueCallback = NullQueueCallback(),
    selection: RunSelection = AllRuns(),
) -> None:
    """Train runs in order, with the notifications of `train_all`; an error ends all of them."""
    for run_spec in run_specs:
        if not selection.is_needed(run_spec):
            queue_callback.on_run_skip(run_spec)
            continue
        if status_of(run_spec).status == WAITING:
            create_folder(run_spec)
        queue_callback.on_run_start(run_spec)
        resume_training(run_spec.folder)
        selection.on_run_end(status_of(run_spec))
        queue_callback.on_run_end(status_of(run_spec))
        queue_callback.on_poll()


@contextmanager
def runs_in_process() -> Generator[None]:
    """Comparisons and trials of a cost estimate train their runs in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("run", "cost_estimate"):
            patch.setattr(f"grupo.compare.{module}.train_all", train_one_by_one)
        yield
