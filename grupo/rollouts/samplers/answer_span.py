"""Marks where the answer is in a rollout, for methods that treat its tokens differently."""

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.answer_tokens import num_items_covering
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithAnswerSpan(SamplerWrapper):
    """Adds the step value `answer`: 1 at the tokens of the answer, 0 at the others.

    The answer is the text of the last response between the last `start` and the next `end`. A token
    that begins in this text belongs to the answer. GRPO-CARE reads the signal `step/answer`.

    Args:
        inner: The sampler whose rollouts are annotated.
        start: Text before the answer.
        end: Text after the answer. If it is missing, the answer reaches to the end of the response.
    """

    start: NonEmptyString = "<answer>"
    end: NonEmptyString = "</answer>"

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        return group.with_rollouts(
            rollout.with_step_values({"answer": self._answer_values(actor, rollout)})
            for rollout in group.rollouts
        )

    def _answer_values(self, actor: Actor, rollout: Rollout) -> tuple[float, ...]:
        """A number for each item of the rollout: 1 in the answer, 0 elsewhere."""
        span = answer_span(last_text(rollout), self.start, self.end)
        if span is None:
            return (0.0,) * rollout.length
        num_earlier = rollout.length - len(rollout.last_response.items)
        first, stop = (num_earlier + num_items_covering(actor, rollout, index) for index in span)
        return tuple(float(first <= i < stop) for i in range(rollout.length))


@component
class WithFirstAnswerLength(SamplerWrapper):
    """Adds the reward term `first_length`: tokens of the last response through its first answer.

    The term is the number of tokens of the last response up to the end of its first answer, or 0
    for a rollout with fewer than two answers. The term has no weight of its own: a reward function
    reads it. SRPO, Wan et al. (arXiv:2506.01713).

    Args:
        inner: The sampler whose rollouts are annotated.
        end: Text that ends an answer.
    """

    end: NonEmptyString = "</answer>"

    provides = Provides(reward_terms=("first_length",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        return group.with_rollouts(
            rollout.with_reward_terms({"first_length": self._first_length(actor, rollout)})
            for rollout in group.rollouts
        )

    def _first_length(self, actor: Actor, rollout: Rollout) -> float:
        """Tokens of the last response up to the end of its first answer; 0 without a second one."""
        text = last_text(rollout)
        if text.count(self.end) < 2:
            return 0.0
        return float(num_items_covering(actor, rollout, text.index(self.end) + len(self.end)))


def last_text(rollout: Rollout) -> str:
    """The text of the last response; "" for a rollout without responses."""
    return rollout.last_response.text if rollout.turns else ""


def answer_span(text: str, start: str, end: str) -> tuple[int, int] | None:
    """Start and stop (exclusive) of the answer's characters in a text; None without `start`.

    >>> answer_span("so <answer>4</answer>", "<answer>", "</answer>")
    (11, 12)
    """
    before, marker, after = text.rpartition(start)
    if not marker:
        return None
    first = len(before) + len(marker)
    return first, first + len(after.partition(end)[0])
