"""A judge that scores each rollout with one call of a model."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import RewardValue, SelfTimedReward
from grupo.rewards.judges.base import ChatModel
from grupo.rewards.judges.parsers import ReplyParser
from grupo.rewards.judges.scores import check_judge, judge_conversation, parse_reply, prepare_judge


@component
class Judge(SelfTimedReward):
    """The score from 0 to 1 that a model gives to a rollout.

    A rollout fails if the model does not reply, or its reply has no score: no number replaces it.

    Args:
        model: The model that judges.
        prompt: Its user message. {prompt}, {completion}, {answer}, {source} and any column of the
            task are replaced by their text, {boundary} by digits that no such text contains; other
            braces are plain text. {completion} is all the text that the policy generated.
        parse: Finds the score in the reply.
        system: Its system message, with the same placeholders; "" for none.
    """

    model: ChatModel
    prompt: NonEmptyString
    parse: ReplyParser
    system: str = ""

    def __post_init__(self) -> None:
        check_judge(self, ("completion",))

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a placeholder without a column, or a model that does not work."""
        prepare_judge(self, tasks, ("completion",))

    async def __call__(
        self, task: Task, rollouts: Sequence[Rollout]
    ) -> Sequence[RewardValue | Exception]:
        conversations = [
            judge_conversation(self, task, completion=rollout.text) for rollout in rollouts
        ]
        replies = await self.model.complete(conversations)
        return [parse_reply(self.parse, reply) for reply in replies]
