"""Outputs of a trained head for given answers: at the end of each, and at its labelled steps."""

import asyncio
from collections.abc import Iterator, Sequence

from grupo.algo.advantages.token_table import to_token_table
from grupo.core.batch import Batch, PerAction
from grupo.core.interfaces import EnvSpec, open_env
from grupo.core.types import Group, Task
from grupo.distributed.base import SINGLE_RANK
from grupo.models.base import Policy
from grupo.rollouts.samplers import GivenAnswerSampler
from grupo.rollouts.samplers.prefix_value import PREFIX_CUT, PREFIX_VALUE
from grupo.rollouts.scorer_metrics import GivenAnswerScore
from grupo.training.update.collate import collate
from grupo.training.update.signals import signals_of_all_rows
from grupo.util.event_loop import run_coroutine

TASKS_AT_ONCE = 64  # number of tasks whose answers are in memory at the same time


def score_answers(
    policy: Policy,
    sampler: GivenAnswerSampler,
    env: EnvSpec,
    tasks: Sequence[Task],
    head: str,
) -> list[GivenAnswerScore]:
    """The output of a head for each answer of the tasks.

    The head is read in the state before the last token of an answer, and at each labelled step in
    the state behind it: the states in which losses read it.

    Args:
        policy: The policy with its heads; it is not changed.
        sampler: Reads the answers of a task from its columns; rewards are their labels.
        env: Makes the prompt of an answer that the data give only as a text.
        tasks: The tasks.
        head: Name of the head.
    """
    answers: list[GivenAnswerScore] = []
    for start in range(0, len(tasks), TASKS_AT_ONCE):
        groups = _read_answers(policy, sampler, env, tasks[start : start + TASKS_AT_ONCE])
        groups = [group for group in groups if group.rollouts]
        if groups:
            batch = collate(groups, policy.encode)
            signals = signals_of_all_rows(policy, policy, batch, [head], SINGLE_RANK)
            answers += _scored(groups, batch, signals[head])
    return answers


def _scored(groups: Sequence[Group], batch: Batch, score: PerAction) -> Iterator[GivenAnswerScore]:
    """The scored answers of groups; those without an action are left out."""
    scores = to_token_table(score, batch)
    is_cut, labels = (
        to_token_table(batch.signals.get(f"step/{name}", score * 0), batch)
        for name in (PREFIX_CUT, PREFIX_VALUE)
    )
    tasks = [group.task.key for group in groups for _ in group.rollouts]
    for i, (task, length) in enumerate(zip(tasks, batch.lengths.tolist(), strict=True)):
        if length:
            at = (is_cut[i] > 0).nonzero()[:, 0]
            yield GivenAnswerScore(
                task,
                scores[i, int(length) - 1].item(),
                float(batch.reward[i] > 0),
                tuple(scores[i, at].tolist()),
                tuple(labels[i, at].tolist()),
            )


def _read_answers(
    policy: Policy, sampler: GivenAnswerSampler, env: EnvSpec, tasks: Sequence[Task]
) -> list[Group]:
    """The answers of each task as a group."""
    actor = policy.actor(key=0)  # no random numbers are drawn

    async def read() -> list[Group]:
        opened_env = open_env(env)
        return list(await asyncio.gather(*(sampler(task, opened_env, actor) for task in tasks)))

    return run_coroutine(read())
