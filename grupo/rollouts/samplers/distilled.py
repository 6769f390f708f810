"""Distilled drafts: answers that read a workspace made of earlier drafts of the same policy."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Protocol

from grupo.core.component import component
from grupo.core.interfaces import Actor, Env, initial_observation, run_rollout, score_group
from grupo.core.numbers import Fraction, PositiveInt
from grupo.core.requires import Provides
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.independent import GroupSampler


class Distill(Protocol):
    """Makes the text of a workspace, of at most `max_tokens` tokens, from drafts of a task."""

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int, /
    ) -> str: ...


@component
class RandomDrafts:
    """The workspace is `count` of the drafts, drawn at random, in their order.

    Args:
        count: Drafts in the workspace.
        separator: Text between two drafts.
    """

    count: PositiveInt = 4
    separator: str = "\n"

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int
    ) -> str:
        rng: Random = actor.rng("drafts")
        drawn = sorted(rng.sample(range(len(drafts)), min(self.count, len(drafts))))
        return joined([drafts[i] for i in drawn], actor, self.separator, max_tokens)


@component
class LikeliestDrafts:
    """The workspace is the `count` drafts of the largest mean log-probability, in their order.

    Args:
        count: Drafts in the workspace.
        separator: Text between two drafts.
    """

    count: PositiveInt = 4
    separator: str = "\n"

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int
    ) -> str:
        ranked = sorted(range(len(drafts)), key=lambda i: -mean_logp(drafts[i]))
        kept = sorted(ranked[: self.count])
        return joined([drafts[i] for i in kept], actor, self.separator, max_tokens)


@component
class SummaryOfDrafts:
    """The workspace is a summary of the drafts, which the policy writes; it is not trained on.

    Args:
        request: Text after the prompt, with the field {drafts}.
        separator: Text between two drafts.
    """

    request: str = (
        "\n\nDrafts:\n{drafts}\n\nSummarise the drafts: where they agree, where they contradict"
        " one another, and what is left to do."
    )
    separator: str = "\n"

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int
    ) -> str:
        shown = self.separator.join(draft.text for draft in drafts)
        request = append_to_prompt(task, self.request.replace("{drafts}", shown))
        observation = await initial_observation(request, env)
        writer = actor.fork("summary").with_stop(max_new_tokens=max_tokens)
        return (await writer(Rollout(), observation)).text


@component
class DistilledDrafts(GroupSampler):
    """Groups that answer behind a workspace of drafts, and ordinary groups.

    A group is one or the other at random. For a group with a workspace, the policy makes `drafts`
    drafts, `distill` makes a text of them, and all rollouts of the group answer the prompt with
    that text, under which they are trained. Neither drafts nor workspace are trained on; all are
    counted as generated. The reward term `operator` is 1 in such a group, else 0.

    Parallel-Distill-Refine with one round, Madaan et al. (arXiv:2510.01123).

    Args:
        group_size: Rollouts in a group.
        turn_strategy: How the policy takes a turn.
        drafts: Drafts of a workspace (M in the paper).
        distill: Makes the workspace of the drafts.
        max_tokens: Tokens of the workspace at most (kappa in the paper).
        share: Probability that a group has a workspace.
        request: Text after the prompt, with the field {workspace}.
    """

    drafts: PositiveInt = 4
    distill: Distill = SummaryOfDrafts()
    max_tokens: PositiveInt = 512
    share: Fraction = 0.5
    request: str = "\n\nNotes of earlier drafts:\n{workspace}\n\nAnswer."

    provides = Provides(reward_terms=("operator",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        is_operator = actor.rng("operator").random() < self.share
        shown_task = await self._with_workspace(task, env, actor) if is_operator else task
        rollouts = await asyncio.gather(
            *(
                run_rollout(shown_task, env, actor.fork(i), turn_strategy=self.turn_strategy)
                for i in range(task.group_size or self.group_size)
            )
        )
        group = await score_group(task, env, rollouts)
        term = {"operator": float(is_operator)}
        annotated = (replace(r, reward_terms={**r.reward_terms, **term}) for r in group.rollouts)
        return replace(group, rollouts=tuple(annotated))

    async def _with_workspace(self, task: Task, env: Env, actor: Actor) -> Task:
        drafts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork("draft", i), turn_strategy=self.turn_strategy)
                for i in range(self.drafts)
            )
        )
        workspace = await self.distill(task, drafts, env, actor, self.max_tokens)
        return append_to_prompt(task, self.request.replace("{workspace}", workspace))


def mean_logp(rollout: Rollout) -> float:
    """The mean log-probability of the sampled items; minus infinity if there are none.

    >>> from grupo.core.types import Response
    >>> mean_logp(Rollout().append_turn("?", Response((1, 2), (-1.0, -3.0))))
    -2.0
    """
    logps = [x for _, response in rollout.turns if response.sampled for x in response.logp]
    return fmean(logps) if logps else float("-inf")


def joined(drafts: Sequence[Rollout], actor: Actor, separator: str, max_tokens: int) -> str:
    """The texts of drafts, the last of which may be cut: `max_tokens` tokens without separators."""
    texts = []
    for draft in drafts:
        if not max_tokens:
            break
        too_long = draft.length > max_tokens and len(draft.turns) == 1
        shown = actor.truncate(draft, max_tokens) if too_long else draft
        if shown.length > max_tokens:
            break
        texts.append(shown.text)
        max_tokens -= shown.length
    return separator.join(texts)
