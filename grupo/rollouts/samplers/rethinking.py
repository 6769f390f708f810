"""Forced rethinking: finished answers go on behind a trigger, and those that end right are kept."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
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
    """Chooses the text that is forced behind a rollout."""

    def __call__(self, is_correct: bool, rng: Random, /) -> str: ...


@component
class RandomTrigger:
    """A random text, or, in half of the draws, the text for correct or for wrong rollouts.

    The defaults are those of the authors' code of VL-Rethinker, Wang et al. (arXiv:2504.08837).

    Args:
        texts: Pairs of a text and its weight.
        if_correct: Text for correct rollouts; "" leaves these to `texts`.
        if_wrong: Text for wrong rollouts; "" leaves these to `texts`.

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
        own = self.if_correct if is_correct else self.if_wrong
        if own and rng.random() < 0.5:
            return own
        texts, weights = zip(*self.texts, strict=True)
        return rng.choices(texts, weights)[0]


@component
class ForcedRethinking(SamplerWrapper):
    """Continues finished rollouts behind a trigger; those that end correctly replace their origin.

    A rollout is continued with probability `chance`, unless the token limit ended it: it loses its
    end token, and in `cut_chance` of the cases also its end from the answer on; the trigger is
    forced, and the policy goes on. A continuation that is correct and neither too short nor too
    long takes the place of the rollout, at most `max_per_group` in a group. The trigger is trained
    on with the ratio to the policy, as if it had been sampled. The reward term `rethought` is 1 for
    a rollout, continued or not, whose text has the marker, and 0 for others.

    VL-Rethinker, Wang et al. (arXiv:2504.08837).

    Args:
        inner: The sampler of the group.
        trigger: The forced text.
        chance: Probability that a rollout is continued.
        cut_chance: Probability that it first loses its end.
        cut_before: It is cut before the last occurrence of each of these texts, one after another.
        max_per_group: Most continuations that are kept in a group.
        min_tokens: Fewest tokens of a continuation that is kept.
        max_tokens: Most tokens of a continuation that is kept.
        temperature: Factor on the policy's temperature in continuations.
        marker: Text of a rollout that rethinks, in lower case.
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
        kept = [i for i, rollout in zip(chosen, scored, strict=True) if self._is_kept(rollout)]
        by_place = dict(zip(chosen, scored, strict=True))
        new = {i: by_place[i] for i in kept[: self.max_per_group]}
        rollouts = (new.get(i, rollout) for i, rollout in enumerate(group.rollouts))
        return replace(group, rollouts=tuple(map(self._with_term, rollouts)))

    def _is_chosen(self, number: int, rollout: Rollout, actor: Actor) -> bool:
        if not rollout.length or rollout.error or rollout.truncated:
            return False
        return actor.fork("rethink", number).rng("chance").random() < self.chance

    async def _continue(self, rollout: Rollout, actor: Actor) -> Rollout:
        """The rollout, cut or not, with a trigger and a new end; not scored."""
        rng = actor.rng("trigger")
        open_rollout = without_end(rollout, actor)
        if rng.random() < self.cut_chance:
            open_rollout = cut_back(open_rollout, actor, self.cut_before)
        text = self.trigger(rollout.reward > self.success_threshold, rng)
        forced = await append_forced(actor, open_rollout, "", text)
        started = await with_trained_text(actor, forced)
        limited = actor.with_sampling(temperature=self.temperature).with_stop(
            max_new_tokens=self.max_tokens + 1
        )
        return started.append_turn("", await limited(started, ""))

    async def _score(self, task: Task, env: Env, continued: Sequence[Rollout]) -> Sequence[Rollout]:
        return (await score_group(task, env, continued)).rollouts if continued else ()

    def _is_kept(self, rollout: Rollout) -> bool:
        length = len(rollout.turns[-1][1].items)
        is_correct = not rollout.error and rollout.reward > self.success_threshold
        return is_correct and self.min_tokens <= length <= self.max_tokens

    def _with_term(self, rollout: Rollout) -> Rollout:
        rethought = float(self.marker in rollout.text.lower())
        return replace(rollout, reward_terms={**rollout.reward_terms, "rethought": rethought})


def without_end(rollout: Rollout, actor: Actor) -> Rollout:
    """The rollout without the end token of its last answer, so that it can go on."""
    last = rollout.turns[-1][1]
    if last.finish_reason != "end":
        return rollout
    return actor.truncate(rollout, len(last.items) - 1)


def cut_back(rollout: Rollout, actor: Actor, before: Sequence[str]) -> Rollout:
    """The rollout with its last response cut before the last occurrence of each text in turn.

    At least one item of the response is kept; without any of the texts it stays as it is.

    Args:
        rollout: The rollout.
        actor: Decodes the items.
        before: The texts.
    """
    last = rollout.turns[-1][1]
    text = last.text
    for mark in before:
        head, found, _ = text.rpartition(mark)
        text = head if found else text
    if text == last.text:
        return rollout
    lengths = range(1, len(last.items) + 1)
    count = bisect_right(
        lengths, len(text), key=lambda n: len(actor.truncate(rollout, n).turns[-1][1].text)
    )
    return actor.truncate(rollout, max(1, count))
