"""Pairwise comparison: the policy, or another role, says which of two candidates is better."""

import re
from collections.abc import Sequence

from grupo.core.component import component
from grupo.core.forms import check_form, fill
from grupo.core.interfaces import Actor
from grupo.core.requires import Provides
from grupo.core.types import Observation, Rollout
from grupo.core.usage import add_external_usage
from grupo.rollouts.turns.choices import text_since
from grupo.rollouts.turns.private_context import private_reply, task_text, with_task_text

COMPARE = "{task}\n\nAnswer 1: {first}\n\nAnswer 2: {second}\n\nWhich is better? Reply 1 or 2."


@component
class PairwiseComparison:
    """Chooses the best candidate: compares each one, in order, with the best one so far.

    Two prompts compare a pair of candidates, in both orders. The later candidate becomes the best
    one only if both replies prefer it. A preference for a position, or a reply without 1 or 2,
    therefore keeps the earlier candidate. Candidates with equal texts are not compared. The usage
    `comparisons/undecided` counts pairs whose two replies do not prefer the same candidate.

    Args:
        prompt: Prompt with {task}, {first} and {second}. The first 1 or 2 in the reply decides.
        role: Role that replies; "" for the policy itself.

    Raises:
        ConfigError: `prompt` lacks a placeholder, or has an unknown one.
    """

    prompt: str = COMPARE
    role: str = ""

    def __post_init__(self) -> None:
        check_form("PairwiseComparison.prompt", self.prompt, ("task", "first", "second"))

    @property
    def provides(self) -> Provides:
        """The role whose replies this component generates, for the check of the recipe."""
        return Provides(roles=(self.role,) if self.role else ())

    async def __call__(self, actor: Actor, before: Rollout, candidates: Sequence[Rollout]) -> int:
        start = len(before.turns)
        observation, _ = candidates[0].turns[start]
        texts = [text_since(before, candidate) for candidate in candidates]
        best = 0
        for i in range(1, len(texts)):
            if texts[i] == texts[best]:
                continue
            judge = actor.fork("compare", start, i)
            pair = texts[best], texts[i]
            in_order = await self._winner(judge.fork(0), before, observation, *pair)
            reversed_order = await self._winner(judge.fork(1), before, observation, *pair[::-1])
            if (in_order, reversed_order) == ("2", "1"):
                best = i
            elif (in_order, reversed_order) != ("1", "2"):
                add_external_usage({"comparisons/undecided": 1.0})
        return best

    async def _winner(
        self, actor: Actor, before: Rollout, observation: Observation, first: str, second: str
    ) -> str:
        """The number of the better answer, "1" or "2"; "" if the reply has neither."""
        values = {"task": task_text(observation), "first": first, "second": second}
        prompt = with_task_text(observation, fill(self.prompt, values))
        reply = await private_reply(actor, before, prompt, role=self.role, label="better?")
        number = re.search(r"\b[12]\b", reply)
        return number[0] if number else ""
