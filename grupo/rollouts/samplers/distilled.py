"""Groups whose prompt contains a workspace: a text made from the policy's own drafts."""

import asyncio
from collections.abc import Sequence
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


class WorkspaceWriter(Protocol):
    """Makes a workspace, a text of at most `max_tokens` tokens, from drafts of a task."""

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int, /
    ) -> str: ...


@component
class RandomDrafts:
    """The workspace is the texts of `count` random drafts, in the order of the drafts.

    Args:
        count: Number of drafts in the workspace.
        separator: Text between two drafts.
    """

    count: PositiveInt = 4
    separator: str = "\n"

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int
    ) -> str:
        rng: Random = actor.rng("drafts")
        indices = sorted(rng.sample(range(len(drafts)), min(self.count, len(drafts))))
        return join_drafts([drafts[i] for i in indices], actor, self.separator, max_tokens)


@component
class LikeliestDrafts:
    """The workspace is the texts of the `count` drafts with the largest mean log-probability.

    The texts are in the order of the drafts.

    Args:
        count: Number of drafts in the workspace.
        separator: Text between two drafts.
    """

    count: PositiveInt = 4
    separator: str = "\n"

    async def __call__(
        self, task: Task, drafts: Sequence[Rollout], env: Env, actor: Actor, max_tokens: int
    ) -> str:
        ranked = sorted(range(len(drafts)), key=lambda i: -mean_logp(drafts[i]))
        indices = sorted(ranked[: self.count])
        return join_drafts([drafts[i] for i in indices], actor, self.separator, max_tokens)


@component
class SummaryOfDrafts:
    """The workspace is a summary of the drafts. The policy generates it, but is not trained on it.

    Args:
        request: Text that is appended to the task's prompt to request the summary. The drafts take
            the place of {drafts} in it.
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
        texts = self.separator.join(draft.text for draft in drafts)
        summary_task = append_to_prompt(task, self.request.replace("{drafts}", texts))
        observation = await initial_observation(summary_task, env)
        summarizer = actor.fork("summary").with_stop(max_new_tokens=max_tokens)
        return (await summarizer(Rollout(), observation)).text


@component
class DistilledDrafts(GroupSampler):
    """Groups of independent rollouts. Some of the groups answer a prompt with a workspace.

    A group has a workspace with probability `share`. The policy then generates `drafts` drafts, and
    `distill` makes the workspace of them. All rollouts of the group are generated and trained with
    the workspace in their prompt. The drafts and the workspace are not trained on, but their tokens
    are counted as generated. The reward term `has_workspace` is 1 in a group with a workspace, else
    0. It is no part of the reward.

    Parallel-Distill-Refine with one round, Madaan et al. (arXiv:2510.01123).

    Args:
        group_size: Number of rollouts in a group.
        turn_strategy: Generates the response to one observation.
        drafts: Number of drafts for a workspace (M in the paper).
        distill: Makes the workspace of the drafts.
        max_tokens: Largest number of tokens in the workspace (kappa in the paper).
        share: Probability that a group has a workspace.
        request: Text that is appended to the prompt. The workspace takes the place of {workspace}
            in it.
    """

    drafts: PositiveInt = 4
    distill: WorkspaceWriter = SummaryOfDrafts()
    max_tokens: PositiveInt = 512
    share: Fraction = 0.5
    request: str = "\n\nNotes of earlier drafts:\n{workspace}\n\nAnswer."

    provides = Provides(reward_terms=("has_workspace",))

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        has_workspace = actor.rng("operator").random() < self.share
        prompted_task = await self._with_workspace(task, env, actor) if has_workspace else task
        rollouts = await asyncio.gather(
            *(
                run_rollout(prompted_task, env, actor.fork(i), turn_strategy=self.turn_strategy)
                for i in range(task.group_size or self.group_size)
            )
        )
        # the environment scores the answers to the task's own prompt
        group = await score_group(task, env, rollouts)
        term = {"has_workspace": float(has_workspace)}
        return group.with_rollouts(rollout.with_reward_terms(term) for rollout in group.rollouts)

    async def _with_workspace(self, task: Task, env: Env, actor: Actor) -> Task:
        """The task with a workspace in its prompt."""
        drafts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork("draft", i), turn_strategy=self.turn_strategy)
                for i in range(self.drafts)
            )
        )
        workspace = await self.distill(task, drafts, env, actor, self.max_tokens)
        return append_to_prompt(task, self.request.replace("{workspace}", workspace))


def mean_logp(rollout: Rollout) -> float:
    """The mean log-probability of the sampled items; minus infinity if no item was sampled.

    >>> from grupo.core.types import Response
    >>> mean_logp(Rollout().append_turn("?", Response((1, 2), (-1.0, -3.0))))
    -2.0
    """
    logps = [x for _, response in rollout.turns if response.sampled for x in response.logp]
    return fmean(logps) if logps else float("-inf")


def join_drafts(drafts: Sequence[Rollout], actor: Actor, separator: str, max_tokens: int) -> str:
    """The joined texts of drafts, which have at most `max_tokens` tokens together.

    The first draft that exceeds the limit is truncated if it has one turn, and left out if it has
    several. All later drafts are left out.

    Args:
        drafts: The drafts.
        actor: Truncates a draft.
        separator: Text between two drafts, whose tokens are not counted.
        max_tokens: Largest number of tokens of the drafts.
    """
    texts = []
    num_left = max_tokens
    for draft in drafts:
        if not num_left:
            break
        must_truncate = draft.length > num_left and len(draft.turns) == 1
        fitting = actor.truncate(draft, num_left) if must_truncate else draft
        if fitting.length > num_left:
            break
        texts.append(fitting.text)
        num_left -= fitting.length
    return separator.join(texts)
