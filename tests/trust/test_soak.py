"""Hours of training, resuming and serving in one process: no resource grows.

`SOAK_SECONDS` sets the duration, one minute by default.
"""

import os
import shutil
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from grupo.method import Method
from grupo.methods.rae import rae
from grupo.recipe import Evaluation, Recipe
from grupo.report.html.server import ReportServer
from grupo.testing.smoke.run import echo_recipe
from grupo.training.callbacks import NullCallback
from grupo.training.start import resume_training, run_training
from tests.helpers.report_servers import connect, exchange, get_request, served
from tests.helpers.resource_use import (
    PER_RUN,
    Sample,
    excessive_growth,
    growth,
    resize_interned_table,
    resource_use,
)

pytestmark = pytest.mark.trust

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
STEPS = 20  # of one run
STOP_AFTER = 10  # the step after which a run is interrupted, between two saves


class Interrupt(NullCallback):
    """Interrupts a run after a step."""

    def on_step_end(self, step, metrics):
        if step == STOP_AFTER:
            raise KeyboardInterrupt


class Watch(NullCallback):
    """Requests the live report after each step, with a connection that never sends its request."""

    def __init__(self, server: ReportServer) -> None:
        self.server = server

    def on_step_end(self, step, metrics):
        with connect(self.server):
            assert exchange(self.server, get_request(self.server))[0] == 200
            assert exchange(self.server, get_request(self.server, "run/0"))[0] == 200


def recipes() -> list[Recipe]:
    """Runs of two methods, one with asynchronous rollouts and one with a history of each task."""
    changes = {"prompts_per_step": 2, "save_every": 4, "eval_tasks": 2}
    recipe = echo_recipe(Method(), max_steps=STEPS).replace(**changes, max_staleness=1)
    evaluation = Evaluation(attempts=1, every=7)
    return [recipe, echo_recipe(rae(), max_steps=STEPS).replace(**changes, evaluation=evaluation)]


def run_and_resume(recipe: Recipe, folder: Path) -> None:
    """Train a run up to its interruption, resume it while it is watched, and remove it."""
    with pytest.raises(KeyboardInterrupt):
        run_training(recipe, folder, Interrupt())
    with served(folder) as server:
        assert resume_training(folder, Watch(server))["steps"] == STEPS
    shutil.rmtree(folder)


def soak(folder: Path, seconds: float) -> list[Sample]:
    """The resources in use after each cycle of four runs, two of them resumed."""
    samples, cycle_recipes, end = [], recipes(), time.monotonic() + seconds
    with pytest.MonkeyPatch.context() as patch:
        (folder / "tmp").mkdir()
        patch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        for cycle in count(1):
            for recipe in cycle_recipes:
                run_and_resume(recipe, folder / "run")
            if not samples:
                resize_interned_table()
            samples.append(resource_use(cycle * 2 * len(cycle_recipes)))
            if time.monotonic() > end and cycle >= 8:
                return samples


def test_no_resource_grows_while_runs_are_trained_resumed_and_watched(tmp_path):
    samples = soak(tmp_path, SECONDS)
    print(f"{samples[-1]['at']} runs, {STEPS * samples[-1]['at'] // 2} steps; growth per run:")
    print(growth(samples), samples[0], samples[-1], sep="\n")
    assert excessive_growth(samples, PER_RUN) == {}
