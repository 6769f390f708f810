"""Rescue: further attempts at a task whose group is not informative, with hints or feedback.

An attempt has three parts: the prompts that are asked (`ask`), the rollouts that are kept (`keep`)
and the prompt that these are trained under (`reprompt`, of `trained_prompts`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from grupo.core.component import component, walk
from grupo.core.interfaces import (
    Actor,
    Env,
    TurnStrategy,
    run_rollout,
    score_group,
    single_response,
)
from grupo.core.numbers import NumberOrSchedule
from grupo.core.ranges import NonEmptyString
from grupo.core.requires import merged_provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import all_incorrect
from grupo.rollouts.samplers.kept_answers import Keep, add_all
from grupo.rollouts.samplers.trained_prompts import TrainedPrompt, asked_prompt
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@dataclass(frozen=True)
class AskedPrompt:
    """A prompt of an attempt, and the random streams of the rollouts that answer it.

    Args:
        task: The group's task with the prompt that is asked.
        streams: Label of the random stream of each rollout, for `Actor.fork`.
        reward_terms: Reward terms of the rollouts, besides those of the environment.
    """

    task: Task
    streams: tuple[tuple[object, ...], ...]
    reward_terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AttemptPrompts:
    """The prompts of an attempt, and rollouts that were made to find them.

    Args:
        prompts: The prompts.
        rollouts: Scored rollouts, such as hints that the policy generated.
    """

    prompts: tuple[AskedPrompt, ...] = ()
    rollouts: tuple[Rollout, ...] = ()


class Ask(Protocol):
    """The prompts of an attempt at the task of a group; none if the attempt is left out."""

    async def __call__(self, group: Group, env: Env, actor: Actor, /) -> AttemptPrompts: ...


@component
class Attempt:
    """One more attempt at the task of a group: asks, scores the answers, and keeps some of them.

    The answers are scored together, as answers to the group's task. A prompt that leaves no room
    for an answer gets none.

    Args:
        ask: The prompts, with the random streams of their rollouts.
        keep: Merges the rollouts of the attempt into the group.
        reprompt: Moves a rollout to the prompt that it is trained under.
        source: `Rollout.source` of the answers.
        turn_strategy: How the policy takes a turn.
    """

    ask: Ask
    keep: Keep = add_all
    reprompt: TrainedPrompt = asked_prompt
    source: NonEmptyString = "rescue"
    turn_strategy: TurnStrategy = single_response

    async def __call__(self, group: Group, env: Env, actor: Actor) -> Group:
        """The group after the attempt; the same group if nothing was asked."""
        prompts = await self.ask(group, env, actor)
        answers = await asyncio.gather(
            *(self._answers(group.task, prompt, env, actor) for prompt in prompts.prompts)
        )
        scored = await self._score(group.task, env, prompts.prompts, answers)
        rollouts = (*prompts.rollouts, *scored)
        return self.keep(group, rollouts) if rollouts else group

    async def _answers(
        self, task: Task, prompt: AskedPrompt, env: Env, actor: Actor
    ) -> Sequence[Rollout]:
        """The rollouts of a prompt, not scored; none if it leaves no room for an answer."""

        async def answer(stream: tuple[object, ...]) -> Rollout:
            own, start = actor.fork(*stream), Rollout(source=self.source)
            return await run_rollout(prompt.task, env, own, start, self.turn_strategy)

        rollouts = await asyncio.gather(*map(answer, prompt.streams))
        if not all(rollout.length for rollout in rollouts):
            return ()
        return [await self.reprompt(rollout, task, env, actor) for rollout in rollouts]

    async def _score(
        self,
        task: Task,
        env: Env,
        prompts: Sequence[AskedPrompt],
        answers: Sequence[Sequence[Rollout]],
    ) -> Sequence[Rollout]:
        rollouts = [rollout for own in answers for rollout in own]
        if not rollouts:
            return ()
        terms = [p.reward_terms for p, own in zip(prompts, answers, strict=True) for _ in own]
        scored = (await score_group(task, env, rollouts)).rollouts
        return [
            replace(rollout, reward_terms={**rollout.reward_terms, **own})
            for rollout, own in zip(scored, terms, strict=True)
        ]


@component
class AllIncorrect:
    """True for a group in which no scored rollout has a reward above the threshold.

    Args:
        success_threshold: A rollout with a higher reward is correct.
    """

    success_threshold: NumberOrSchedule = 0.5

    def __call__(self, group: Group) -> bool:
        return all_incorrect(group, self.success_threshold)


def every_group(group: Group) -> bool:
    """True for every group."""
    return True


@component
class Rescue(SamplerWrapper):
    """Makes further attempts at the task of a group, one after another, while `when(group)`.

    A reward term that an attempt adds to its rollouts is 0 for the others. Attempts are numbered
    from the innermost `Rescue` on; from the second on, each has random streams of its own.

    Args:
        inner: The sampler of the group.
        attempts: The attempts, in order.
        when: Whether a group gets the next attempt.
    """

    attempts: tuple[Attempt, ...]
    when: Callable[[Group], bool] = AllIncorrect()

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        earlier = sum(isinstance(part, Attempt) for part in walk(self.inner))
        for number, attempt in enumerate(self.attempts, earlier):
            if not self.when(group):
                break
            group = await attempt(group, env, actor.fork("attempt", number) if number else actor)
        terms = sorted(merged_provides(self.attempts).reward_terms)
        return replace(group, rollouts=tuple(_with_terms(r, terms) for r in group.rollouts))


def _with_terms(rollout: Rollout, names: Sequence[str]) -> Rollout:
    """The rollout with reward terms of these names, 0 where it has none."""
    missing = {name: 0.0 for name in names if name not in rollout.reward_terms}
    return replace(rollout, reward_terms={**rollout.reward_terms, **missing})
