"""Rescue: further rollouts, with hints or feedback, for a group that is not informative.

A rescue attempt is one round of such rollouts. It has three components, which run in this order.
`build_prompts` builds the prompts of the rollouts, such as the task's prompt with a hint.
`training_prompt` gives each rollout the prompt with which it is trained. `merge` merges the scored
rollouts into the group.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
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
from grupo.rollouts.samplers.merge_rules import MergeRollouts, add_all
from grupo.rollouts.samplers.trained_prompts import TrainingPrompt, keep_generation_prompt
from grupo.rollouts.samplers.wrapper import SamplerWrapper


@dataclass(frozen=True)
class GenerationPrompt:
    """A prompt of a rescue attempt, and the random streams of the rollouts that answer the prompt.

    Args:
        task: The group's task, with the prompt of the rescue attempt in place of its own prompt.
        rng_labels: The label of a random stream for each rollout, as `Actor.fork` takes it. The
            prompt gets one rollout for each label.
        reward_terms: Reward terms that the rollouts get besides those of the environment.
    """

    task: Task
    rng_labels: tuple[tuple[object, ...], ...]
    reward_terms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RescuePrompts:
    """The prompts of a rescue attempt, and further rollouts for the group.

    Args:
        prompts: The prompts that the policy answers.
        extra_rollouts: Scored rollouts that are merged into the group before the answers, such as
            the rollouts in which the policy generated the hints.
    """

    prompts: tuple[GenerationPrompt, ...] = ()
    extra_rollouts: tuple[Rollout, ...] = ()


class PromptBuilder(Protocol):
    """Builds the prompts of a rescue attempt, which generates nothing if there is no prompt."""

    async def __call__(self, group: Group, env: Env, actor: Actor, /) -> RescuePrompts: ...


@component
class RescueAttempt:
    """One more round of rollouts for a group: generates, scores and merges them.

    The environment scores all rollouts in one call, with the group's task. If a prompt leaves no
    room in the context for an answer, there are no rollouts for that prompt.

    Args:
        build_prompts: Builds the prompts, with the random streams of their rollouts.
        merge: Merges the scored rollouts into the group.
        training_prompt: Gives a rollout the prompt that it is trained with.
        source: Name of the rescue attempt, stored as `Rollout.source` of its rollouts.
        turn_strategy: Generates the response to one observation.
    """

    build_prompts: PromptBuilder
    merge: MergeRollouts = add_all
    training_prompt: TrainingPrompt = keep_generation_prompt
    source: NonEmptyString = "rescue"
    turn_strategy: TurnStrategy = single_response

    async def __call__(self, group: Group, env: Env, actor: Actor) -> Group:
        """The group with the rollouts of the attempt merged in; the same group if it has none."""
        inputs = await self.build_prompts(group, env, actor)
        rollouts_by_prompt = await asyncio.gather(
            *(self._generate(group.task, prompt, env, actor) for prompt in inputs.prompts)
        )
        scored = await self._score(group.task, env, inputs.prompts, rollouts_by_prompt)
        rollouts = (*inputs.extra_rollouts, *scored)
        return self.merge(group, rollouts) if rollouts else group

    async def _generate(
        self, task: Task, prompt: GenerationPrompt, env: Env, actor: Actor
    ) -> Sequence[Rollout]:
        """The unscored rollouts of a prompt; () if the context has no room for an answer.

        Args:
            task: The group's task, from whose prompt `training_prompt` may take the new prompt.
            prompt: The prompt from which the rollouts are generated.
            env: The environment.
            actor: Generates the rollouts.
        """

        async def answer(rng_label: tuple[object, ...]) -> Rollout:
            forked, empty_rollout = actor.fork(*rng_label), Rollout(source=self.source)
            return await run_rollout(prompt.task, env, forked, empty_rollout, self.turn_strategy)

        rollouts = await asyncio.gather(*map(answer, prompt.rng_labels))
        if not all(rollout.length for rollout in rollouts):
            return ()
        return [await self.training_prompt(rollout, task, env, actor) for rollout in rollouts]

    async def _score(
        self,
        task: Task,
        env: Env,
        prompts: Sequence[GenerationPrompt],
        rollouts_by_prompt: Sequence[Sequence[Rollout]],
    ) -> Sequence[Rollout]:
        """The scored rollouts of all prompts, with the reward terms of their prompts."""
        rollouts = list(chain.from_iterable(rollouts_by_prompt))
        if not rollouts:
            return ()
        pairs = zip(prompts, rollouts_by_prompt, strict=True)
        added_terms = [prompt.reward_terms for prompt, answers in pairs for _ in answers]
        scored = (await score_group(task, env, rollouts)).rollouts
        return [
            rollout.with_reward_terms(terms)
            for rollout, terms in zip(scored, added_terms, strict=True)
        ]


@component
class AllIncorrect:
    """True for a group with scored rollouts if no reward is above the threshold.

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
    """Adds rollouts to a group by rescue attempts, one after another, while `when(group)` holds.

    A reward term that an attempt adds to its rollouts is 0 for the other rollouts of the group.

    Args:
        inner: The sampler of the group.
        attempts: The rescue attempts, in order.
        when: Called with the group before each attempt; False ends the attempts.
    """

    attempts: tuple[RescueAttempt, ...]
    when: Callable[[Group], bool] = AllIncorrect()

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        group = await self.inner(task, env, actor)
        num_inner_attempts = sum(isinstance(part, RescueAttempt) for part in walk(self.inner))
        for number, attempt in enumerate(self.attempts, num_inner_attempts):
            if not self.when(group):
                break
            # `number` also counts the attempts of inner `Rescue` samplers, so that no two attempts
            # have the same random streams. Attempt 0 needs no fork: the labels of its streams, such
            # as ("hinted", 0), differ from those of the inner sampler.
            group = await attempt(group, env, actor.fork("attempt", number) if number else actor)
        zeros = dict.fromkeys(sorted(merged_provides(self.attempts).reward_terms), 0.0)
        return group.with_rollouts(
            r.with_reward_terms({**zeros, **r.reward_terms}) for r in group.rollouts
        )
