"""Rewards and games of the actors in tests of Ray: they record and end their own processes."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs.game_env import GameEnv
from tests.helpers.training_components import LetterGame, fine

PAUSE = 0.5  # seconds that a slow reward takes


def processes(folder: Path) -> set[int]:
    """The processes that `record` has recorded in a folder."""
    return {int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")}


def record(folder: str) -> None:
    """Record this process in a folder."""
    (Path(folder) / f"pid-{os.getpid()}").touch()


def end_process(folder: str, deaths: int) -> None:
    """Kill this process, unless the processes of a folder have done so so many times."""
    for number in range(deaths):
        with suppress(FileExistsError):
            (Path(folder) / f"death-{number}").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


def num_deaths(folder: Path) -> int:
    """How many processes of a folder have killed themselves."""
    return len(list(folder.glob("death-*")))


@component
class SlowReward:
    """As `fine`, after a pause like that of a judge; records its process."""

    folder: str

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        record(self.folder)
        time.sleep(PAUSE)
        return [fine(task, rollout) for rollout in rollouts]


@component
class DeadlyReward:
    """As `fine`, but the first calls kill their process."""

    folder: str
    deaths: int = 1

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        end_process(self.folder, self.deaths)
        return [fine(task, rollout) for rollout in rollouts]


@component
class DeadlyAnswers:
    """As `fine`, but an answer of a task whose prompt begins with a letter kills the process."""

    letter: str
    folder: str

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        record(self.folder)
        time.sleep(0.05)  # other calls run meanwhile
        if str(task.prompt).startswith(self.letter):
            os.kill(os.getpid(), signal.SIGKILL)
        return [fine(task, rollout) for rollout in rollouts]


@component
class HangingReward:
    """As `fine`, but the first call stops its process."""

    folder: str

    def __call__(self, task: Task, rollouts: Sequence[Rollout]) -> list[float]:
        with suppress(FileExistsError):
            (Path(self.folder) / "death-0").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGSTOP)
        return [fine(task, rollout) for rollout in rollouts]


@component
class DeadlyGames:
    """Letter games of which some steps kill their process."""

    folder: str
    deaths: int = 1

    def __call__(self) -> GameEnv:
        return DeadlyGame(self.folder, self.deaths)


class DeadlyGame(LetterGame):
    """A letter game whose second turn may kill its process."""

    def __init__(self, folder: str, deaths: int) -> None:
        self.folder = folder
        self.deaths = deaths
        self.turns = 0

    def step(self, text: str) -> tuple[str, float, bool]:
        self.turns += 1
        if self.turns == 2:
            end_process(self.folder, self.deaths)
        return super().step(text)


@component
class RaisingEnv:
    """An environment that raises an error of its own."""

    async def reply(self, task: Task, rollout: Rollout) -> str:
        raise ZeroDivisionError("no reply")

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> Sequence[float]:
        return []
