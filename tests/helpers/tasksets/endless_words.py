"""A taskset of verifiers without end."""

from itertools import count

import verifiers.v1 as vf

__all__ = ["EndlessTaskset"]


class EndlessTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def any(self, trace: vf.Trace) -> float:
        return 1.0


class EndlessTaskset(vf.Taskset[EndlessTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        for number in count():
            yield EndlessTask(vf.TaskData(prompt=str(number)), self.config.task)
