"""The environment of one prompt and one generated image."""

from grupo.core.component import component
from grupo.core.types import Observation, Rollout, Task
from grupo.envs.single_turn import SingleTurn


@component
class ImageGeneration(SingleTurn):
    """The task's prompt, one image, and the rewards of `SingleTurn`.

    A sampler may denoise the image in several responses; the environment answers each unfinished
    one with an empty observation.
    """

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if not rollout.turns:
            return task.prompt
        return "" if rollout.truncated else None
