"""Marks of the parts of an answer, for methods that treat its tokens differently."""

from dataclasses import replace

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.answer_tokens import items_through
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@component
class WithAnswerSpan(SamplerWrapper):
    """Adds the step value `answer`: 1 at the tokens of the answer, 0 at the others.

    The answer is the text between the last `start` and the `end` behind it, in the last response. A
    token that begins between them is part of it. GRPO-CARE reads the signal `step/answer`.

    Args:
        inner: The sampler whose rollouts are annotated.
        start: Text before the answer.
        end: Text behind the answer; without it the answer ends with the text.
    """

    start: NonEmptyString = "<answer>"
    end: NonEmptyString = "</answer>"

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        marked = [
            replace(r, step_values={**r.step_values, "answer": self.mark(actor, r)})
            for r in group.rollouts
        ]
        return replace(group, rollouts=tuple(marked))

    def mark(self, actor: Actor, rollout: Rollout) -> tuple[float, ...]:
        """1 for each item of the answer, 0 for each other item.

        Args:
            actor: Cuts and decodes.
            rollout: The rollout.
        """
        span = answer_span(last_text(rollout), self.start, self.end)
        if span is None:
            return (0.0,) * rollout.length
        earlier = rollout.length - len(rollout.turns[-1][1].items)
        first, stop = (earlier + items_through(actor, rollout, place) for place in span)
        return tuple(float(first <= item < stop) for item in range(rollout.length))


@component
class WithFirstAnswerLength(SamplerWrapper):
    """Adds the reward term `first_length`: tokens through the first answer, 0 without a second.

    SRPO, Wan et al. (arXiv:2506.01713), reads it.

    Args:
        inner: The sampler whose rollouts are annotated.
        end: Text that ends an answer.
    """

    end: NonEmptyString = "</answer>"

    provides = Provides(reward_terms=("first_length",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        measured = [
            replace(r, reward_terms={**r.reward_terms, "first_length": self.length(actor, r)})
            for r in group.rollouts
        ]
        return replace(group, rollouts=tuple(measured))

    def length(self, actor: Actor, rollout: Rollout) -> float:
        """Items of the last response through its first answer; 0 without a second one.

        Args:
            actor: Cuts and decodes.
            rollout: The rollout.
        """
        text = last_text(rollout)
        if text.count(self.end) < 2:
            return 0.0
        return float(items_through(actor, rollout, text.index(self.end) + len(self.end)))


def last_text(rollout: Rollout) -> str:
    """The text of the last response; "" without one."""
    return rollout.turns[-1][1].text if rollout.turns else ""


def answer_span(text: str, start: str, end: str) -> tuple[int, int] | None:
    """Places of the first character of the answer and behind its last one; None without `start`.

    >>> answer_span("so <answer>4</answer>", "<answer>", "</answer>")
    (11, 12)
    """
    before, marker, answer = text.rpartition(start)
    if not marker:
        return None
    first = len(before) + len(marker)
    return first, first + len(answer.partition(end)[0])
