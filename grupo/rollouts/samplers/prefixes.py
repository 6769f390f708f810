"""Beginnings of rollouts, and their continuations."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grupo.core.interfaces import Actor, Env, TurnStrategy, run_rollout, score_group
from grupo.core.types import Group, Rollout, Task
from grupo.util.errors import ConfigError


@dataclass(frozen=True)
class Prefix:
    """The beginning of a rollout.

    Args:
        rollout: The turns of the beginning; the last answer may be cut.
        is_open: Whether the policy continues the last answer; False if a new turn begins.
    """

    rollout: Rollout = Rollout()
    is_open: bool = False


def prefix_at(actor: Actor, rollout: Rollout, num_items: int) -> Prefix:
    """The beginning of a rollout with its first `num_items` items, without reward.

    Raises:
        ConfigError: The rollout has no item after that beginning.
    """
    start = 0  # number of items before the response
    for i, (_, response) in enumerate(rollout.turns):
        before = Rollout(rollout.turns[:i], role=rollout.role, source=rollout.source)
        # a response without an observation continues the answer of the response before it
        if num_items == start and response.observation:
            return Prefix(before)
        if num_items == start and response.items:
            return Prefix(before, is_open=True)
        if num_items < start + len(response.items):
            through_response = replace(before, turns=rollout.turns[: i + 1])
            return Prefix(actor.truncate(through_response, num_items - start), is_open=True)
        start += len(response.items)
    raise ConfigError(
        f"sampler: a cut after item {num_items} of a rollout with {start} items."
        f" Allowed: a cut after fewer than {start} items."
    )


async def continue_rollout(
    task: Task, env: Env, actor: Actor, prefix: Prefix, turn_strategy: TurnStrategy
) -> Rollout:
    """A rollout that begins with `prefix`.

    If the prefix ends within an answer, the policy first samples one more response to the
    observation "", which marks it as the rest of the same answer.
    """
    rollout = prefix.rollout
    if prefix.is_open:
        rollout = rollout.append_turn("", await actor(rollout, ""))
    return await run_rollout(task, env, actor, rollout, turn_strategy)


async def finish_and_score(
    task: Task, env: Env, actor: Actor, rollouts: Sequence[Rollout]
) -> Group:
    """Continue each rollout until the environment ends it, and score the rollouts as a group."""
    # "on": the rollouts go on; the label decides the random stream
    continuations = (run_rollout(task, env, actor.fork("on", i), x) for i, x in enumerate(rollouts))
    return await score_group(task, env, await asyncio.gather(*continuations))
