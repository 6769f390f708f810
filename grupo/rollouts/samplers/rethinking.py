"""Forced rethinking: finished rollouts are continued after a forced text, the trigger."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from random import Random
from typing import Protocol

from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, score_group
from grupo.core.numbers import Fraction, NonNegativeInt, NumberOrSchedule, PositiveInt
from grupo.core.ranges import NonEmptyString, PositiveFloat
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.wrapper import SamplerWrapper
from grupo.rollouts.turns.forced_start import append_forced, with_trained_text


class Trigger(Protocol):
    """Chooses the text that is forced after a rollout, by the correctness of the rollout."""

    def __call__(self, is_correct: bool, rng: Random, /) -> str: ...


@component
class RandomTrigger:
    """Returns a text for the correctness of the rollout or, as often, a text drawn from `texts`.

    With probability 1/2, the text is `if_correct` for a correct rollout and `if_wrong` for a wrong
    one. With probability 1/2, it is drawn from `texts`. The defaults are those of the authors' code
    of VL-Rethinker, Wang et al. (arXiv:2504.08837).

    Args:
        texts: Pairs of a text and the weight with which it is drawn.
        if_correct: Text for correct rollouts. With "", their text is always drawn from `texts`.
        if_wrong: Text for wrong rollouts. With "", their text is always drawn from `texts`.

    >>> RandomTrigger((("Wait", 1.0),), if_correct="", if_wrong="")(True, Random(0))
    'Wait'
    """

    texts: tuple[tuple[NonEmptyString, PositiveFloat], ...] = (
        ("\n\nWait", 0.4),
        ("\n\nWait, does it seem right?", 0.6),
    )
    if_correct: str = "\n\nWait, let's double check"
    if_wrong: str = "\n\nWait, there might be a mistake"

    def __post_init__(self) -> None:
        check_field(self, "texts", bool(self.texts), "at least one text with its weight")

    def __call__(self, is_correct: bool, rng: Random) -> str:
        specific_text = self.if_correct if is_correct else self.if_wrong
        if specific_text and rng.random() < 0.5:
            return specific_text
        texts, weights = zip(*self.texts, strict=True)
        return rng.choices(texts, weights)[0]


@component
class ForcedRethinking(SamplerWrapper):
    """Continues finished rollouts after a forced text; correct continuations replace rollouts.

    A rollout is continued with probability `chance`, unless the token limit ended it. Its end token
    is removed. With probability `cut_chance`, its last part is cut off as well, at the place that
    `cut_before` names. The trigger is forced, and the policy generates a continuation. A correct
    continuation of an allowed length replaces the rollout that it continues. At most
    `max_per_group` rollouts of a group are replaced. The trigger is trained on as if the policy had
    sampled it. The reward term `rethought` is 1 for each rollout of the group whose text contains
    the marker, else 0.

    VL-Rethinker, Wang et al. (arXiv:2504.08837).

    Args:
        inner: The sampler of the group.
        trigger: Chooses the forced text.
        chance: Probability that a rollout is continued.
        cut_chance: Probability that the end of a continued rollout is first cut off.
        cut_before: Texts at which the last response is cut. It is cut before the last occurrence of
            the first text. What remains is cut before the last occurrence of the second text, and
            so on. A text that does not occur is skipped.
        max_per_group: Largest number of rollouts of a group that are replaced.
        min_tokens: Smallest number of generated tokens in a continuation that replaces a rollout.
        max_tokens: Largest number of generated tokens in a continuation that replaces a rollout.
        temperature: Factor by which the policy's temperature is multiplied in continuations. It is
            not a temperature itself.
        marker: Text, in lower case, by which a rollout that rethinks is recognised.
        success_threshold: A rollout with a higher reward is correct.
    """

    trigger: Trigger = RandomTrigger()
    chance: Fraction = 0.65
    cut_chance: Fraction = 0.5
    cut_before: tuple[NonEmptyString, ...] = ("Wait", "\\boxed", "\n\n")
    max_per_group: PositiveInt = 2
    min_tokens: NonNegativeInt = 31
    max_tokens: PositiveInt = 1023
    temperature: PositiveFloat = 0.9
    marker: NonEmptyString = "wait"
    success_threshold: NumberOrSchedule = 0.5

    provides = Provides(reward_terms=("rethought",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        chosen = [
            i for i, rollout in enumerate(group.rollouts) if self._is_chosen(i, rollout, actor)
        ]
        continued = await asyncio.gather(
            *(self._continue(group.rollouts[i], actor.fork("rethink", i)) for i in chosen)
        )
        scored = await self._score(task, env, continued)
        pairs = zip(chosen, scored, strict=True)
        accepted = [(i, rollout) for i, rollout in pairs if self._is_accepted(rollout)]
        replacements = dict(accepted[: self.max_per_group])
        rollouts = (replacements.get(i, rollout) for i, rollout in enumerate(group.rollouts))
        return group.with_rollouts(map(self._with_term, rollouts))

    def _is_chosen(self, index: int, rollout: Rollout, actor: Actor) -> bool:
        """Whether the rollout at this index of the group is continued."""
        if not rollout.length or rollout.error or rollout.truncated:
            return False
        return actor.fork("rethink", index).rng("chance").random() < self.chance

    async def _continue(self, rollout: Rollout, actor: Actor) -> Rollout:
        """The rollout, continued after a trigger; not yet scored.

        The result is the rollout without its end token, and perhaps cut back, followed by the
        trigger and a new continuation.
        """
        rng = actor.rng("trigger")
        open_rollout = without_end(rollout, actor)
        if rng.random() < self.cut_chance:
            open_rollout = cut_back(open_rollout, actor, self.cut_before)
        text = self.trigger(rollout.reward > self.success_threshold, rng)
        # here and below, the observation is empty: the policy reads no text between two turns
        forced = await append_forced(actor, open_rollout, observation="", text=text)
        # marks the trigger as trained on, and stores the policy's log-probabilities of its tokens
        with_trigger = await with_trained_text(actor, forced)
        # `with_sampling` multiplies the policy's own temperature by the factor
        limited = actor.with_sampling(temperature=self.temperature).with_stop(
            # one more than allowed, so that a continuation that is too long can be recognised
            max_new_tokens=self.max_tokens + 1
        )
        continuation = await limited(with_trigger, "")
        return with_trigger.append_turn(observation="", response=continuation)

    async def _score(self, task: Task, env: Env, continued: Sequence[Rollout]) -> Sequence[Rollout]:
        return (await score_group(task, env, continued)).rollouts if continued else ()

    def _is_accepted(self, rollout: Rollout) -> bool:
        """Whether the last turn, the continuation, is correct and of an allowed length."""
        length = len(rollout.last_response.items)
        is_correct = not rollout.error and rollout.reward > self.success_threshold
        return is_correct and self.min_tokens <= length <= self.max_tokens

    def _with_term(self, rollout: Rollout) -> Rollout:
        rethought = float(self.marker in rollout.text.lower())
        return rollout.with_reward_terms({"rethought": rethought})


def without_end(rollout: Rollout, actor: Actor) -> Rollout:
    """The rollout without the end token of its last response, so that it can be continued."""
    last = rollout.last_response
    if last.finish_reason != "end":
        return rollout
    return actor.truncate(rollout, len(last.items) - 1)


def cut_back(rollout: Rollout, actor: Actor, texts: Sequence[str]) -> Rollout:
    """The rollout with its last response cut before texts.

    The response is cut before the last occurrence of the first text. The remaining text is cut
    before the last occurrence of the second text, and so on. At least one item of the response is
    kept.

    Args:
        rollout: The rollout.
        actor: Decodes prefixes of the response, to find the item at a character.
        texts: The texts before which the response is cut, in this order.
    """
    last = rollout.last_response
    remaining = last.text
    for text in texts:
        head, separator, _ = remaining.rpartition(text)
        remaining = head if separator else remaining
    if remaining == last.text:
        return rollout
    # the largest number of items whose text is not longer than the remaining text
    num_items = bisect_right(
        range(1, len(last.items) + 1),
        len(remaining),
        key=lambda n: len(actor.truncate(rollout, n).last_response.text),
    )
    return actor.truncate(rollout, max(1, num_items))
