"""A prompt and one image, which may be drawn in several stretches."""

from grupo.core.component import component
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.single_turn import SingleTurn


@component
class ImageGeneration(SingleTurn):
    """The task's prompt, then nothing until the image is whole; judged as `SingleTurn` judges."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if not rollout.turns:
            return task.prompt
        return "" if rollout.truncated else None
