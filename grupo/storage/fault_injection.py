"""A seam for tests: named places at which a process can be told to die.

`GRUPO_KILL_AT="save/renamed:2"` in the environment kills the process, with a signal that nothing
can catch, the second time that it gets there. Without the variable nothing happens. Tests kill a
run at every name below, resume it, and compare it with a run that was never killed.
"""

import os
import signal
from itertools import count

KILL_AT, HIT_COUNT = os.environ.get("GRUPO_KILL_AT", ""), count(1)

BEGIN_POINTS = (
    "begin/folder",
    *(f"begin/recipe/{stage}" for stage in ("opened", "written", "synced", "renamed")),
)
RESUME_POINTS = ("resume/locked", "resume/cut/metrics", "resume/cut/rollouts", "resume/cut/actions")
SAVE_POINTS = (
    "save/begun",
    "save/swept",
    *(
        f"save/{file}/{stage}"
        for file in ("weights", "optimizer", "history", "data", "manifest")
        for stage in ("opened", "written", "synced")
    ),
    "save/complete",
    "save/renamed",
    "save/visible",
    "save/latest/opened",
    "save/latest/written",
    "save/latest/synced",
    "save/latest/renamed",
    "save/committed",
    "save/removing",
    "save/ended",
)
STEP_POINTS = (
    "run/begin",
    "step/begin",
    "step/asked",
    "step/sampled",
    "step/curated",
    "step/collated",
    "step/observed",
    "step/credited",
    "step/accumulated",
    "step/updated",
    "step/recorded",
    "step/logging",
    "step/logged",
    "step/saved",
    "run/evaluated",
    *(f"run/summary/{stage}" for stage in ("opened", "written", "synced", "renamed")),
    "run/ended",
)


def kill_point(name: str) -> None:
    """Die here if told to; otherwise nothing."""
    if KILL_AT.startswith(f"{name}:") and f"{name}:{next(HIT_COUNT)}" == KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
