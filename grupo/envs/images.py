"""A prompt and one image, which may be drawn in several stretches."""

from grupo.envs.single_turn import SingleTurn
from grupo.piece import piece
from grupo.rollout import Observation, Rollout, Task


@piece
class Images(SingleTurn):
    """The task's prompt, then nothing until the image is whole; judged as `SingleTurn` judges."""

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        if not rollout.turns:
            return task.prompt
        return "" if rollout.truncated else None
