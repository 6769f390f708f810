"""A judge that compares how likely a model finds two replies, without generating one."""

from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Rollout, Task
from grupo.rewards.base import RewardValue, SelfTimedReward
from grupo.rewards.judges.base import JudgeError
from grupo.rewards.judges.local_model import LocalModel
from grupo.rewards.judges.scores import check_judge, judge_conversation, prepare_judge


@component
class LikelierReply(SelfTimedReward):
    """1 if the model finds the reply `yes` likelier than the reply `no`, else 0.

    The log-probability of a reply is the sum over its tokens. `<term>/margin` is their difference,
    in nats. No reply has to be parsed, so that a small model can judge, too. A conversation that
    fills the model's context fails the rollout.

    The judge of constraints without a program in RAIF, Qin et al. (arXiv:2506.01413).

    Args:
        model: The model that judges.
        prompt: The user message, with {completion} and the other placeholders of `Judge`.
        yes: The reply that scores 1.
        no: The reply that scores 0.
        system: The system message; "" for none.
    """

    model: LocalModel
    prompt: NonEmptyString
    yes: NonEmptyString = "YES"
    no: NonEmptyString = "NO"
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
        found = await self.model.reply_logprobs(conversations, (self.yes, self.no))
        return [x if isinstance(x, JudgeError) else _value(x[0] - x[1]) for x in found]


def _value(margin: float) -> RewardValue:
    return {"score": float(margin > 0), "margin": margin}
