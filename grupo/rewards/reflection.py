"""Whether an answer has a reflection: a first answer, a reflection, a second answer."""

from grupo.core.component import component
from grupo.core.extract_answer import FirstInsideTag
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward


@component
class HasReflection(PerRolloutReward):
    """1 if a reflection and a second answer follow the first answer, else 0.

    SRPO, Wan et al. (arXiv:2506.01713): the reward term `reflection`. Its reward term `format` is
    TagFormat(("think", "answer", "reflection", "think", "answer")).
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        _, _, after = rollout.text.partition("</answer>")
        reflection = FirstInsideTag("reflection")(after)
        _, _, after = after.partition("</reflection>")
        return float(bool(reflection) and FirstInsideTag("answer")(after) is not None)
