"""Parts of answers that are reflected upon: a first answer, a reflection, a second answer."""

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward


@component
class FirstInsideTag:
    """The text inside the first <tag>…</tag>; `InsideTag` finds the last one.

    Args:
        tag: Name of the tag, without brackets.

    >>> FirstInsideTag("answer")("<answer> 3 </answer>, no: <answer>4</answer>")
    '3'
    """

    tag: NonEmptyString

    def __call__(self, text: str) -> str | None:
        _, open_tag, after = text.partition(f"<{self.tag}>")
        answer, close_tag, _ = after.partition(f"</{self.tag}>")
        return answer.strip() if open_tag and close_tag else None


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
