"""Kill points for tests: named places in the code at which a process can be killed or stopped.

`GRUPO_KILL_AT="save/renamed:2"` in the environment kills the process, with a signal that cannot be
caught, when it reaches that point for the second time; `GRUPO_KILL_SIGNAL=SIGSTOP` stops it there
instead. Without the variable nothing happens. Tests kill a run at every point below, resume it, and
compare it with an uninterrupted run.
"""

import os
import signal
from itertools import count

KILL_AT = os.environ.get("GRUPO_KILL_AT", "")
KILL_SIGNAL = signal.Signals[os.environ.get("GRUPO_KILL_SIGNAL", "SIGKILL")]
HIT_COUNT = count(1)

BEGIN_POINTS = (
    "begin/folder",
    *(f"begin/recipe/{stage}" for stage in ("opened", "written", "synced", "renamed")),
)
EXTEND_POINTS = (
    "extend/begun",
    "extend/summary_removed",
    *(f"extend/recipe/{stage}" for stage in ("opened", "written", "synced", "renamed")),
)
EMA_POINTS = (  # of runs with an average of the weights
    "step/ema_updated",
    *(f"save/ema/{stage}" for stage in ("opened", "written", "synced")),
)
PIPELINE_POINTS = (
    "pipeline/folder",
    *(f"pipeline/file/{stage}" for stage in ("opened", "written", "synced", "renamed")),
    "stage/begin",
    "merge/begun",
    *(f"merge/{stage}" for stage in ("opened", "written", "synced", "renamed")),
    "data/begun",
    "data/written",
    "data/renamed",
    *(f"data/summary/{stage}" for stage in ("opened", "written", "synced", "renamed")),
    "stage/ended",
)
MEDIA_POINTS = tuple(  # of the files of images, videos and audio
    f"media/{stage}" for stage in ("opened", "written", "synced", "renamed")
)
REPLAY_BUFFER_POINTS = tuple(  # of runs with a replay buffer of rollouts
    f"replay_buffer/{stage}" for stage in ("drawn", "opened", "written", "synced", "removed")
)
RESUME_POINTS = (
    "resume/locked",
    "resume/cut/metrics",
    "resume/cut/rollouts",
    "resume/cut/responses",
)
SAVE_POINTS = (
    "save/begun",
    "save/swept",
    *(
        f"save/{file}/{stage}"
        for file in ("weights", "optimizer", "history", "journal_checksums", "data", "manifest")
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
    "step/tasks_drawn",
    "step/generated",
    "step/filtered",
    "step/collated",
    "step/logprobs_computed",
    "step/advantages_computed",
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
    """Send the signal if `GRUPO_KILL_AT` names this point and hit; otherwise do nothing."""
    if KILL_AT.startswith(f"{name}:") and f"{name}:{next(HIT_COUNT)}" == KILL_AT:
        os.kill(os.getpid(), KILL_SIGNAL)
