"""Evaluation on held-out tasks: how often they are solved, and how likely demonstrations are."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.config.success import with_default_reward_term
from grupo.config.supervised import sampler_for_demonstration_scores
from grupo.core.interfaces import EnvSpec, open_env
from grupo.core.types import Group, Task
from grupo.distributed.base import Ranks
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.demonstration_scores import DemonstrationScores
from grupo.rollouts.eval_result import EvalResult
from grupo.rollouts.evaluate import evaluate
from grupo.rollouts.samplers import GivenAnswerSampler
from grupo.training.update.collate import collate
from grupo.training.update.signals import signals_of_all_rows
from grupo.util.event_loop import run_coroutine
from grupo.util.rng import derive_key

TASKS_AT_ONCE = 64  # number of tasks whose demonstrations are in memory at the same time


def evaluate_held_out(
    recipe: Recipe, policy: Policy, tasks: Sequence[Task], ranks: Ranks
) -> EvalResult:
    """Attempt the held-out tasks, and score the demonstrations of a supervised method.

    Args:
        recipe: `recipe.evaluation` has the number of attempts and the criterion of success.
        policy: The policy, which generates with the weights that were synchronized last.
        tasks: The held-out tasks.
        ranks: The processes that share the tasks; every rank returns the scores of all.
    """
    evaluation = recipe.evaluation
    result = evaluate(
        policy,
        recipe.env,
        tasks,
        num_attempts=evaluation.attempts,
        success=with_default_reward_term(evaluation.success, recipe.env),
        turn_strategy=evaluation.turn_strategy,
        key=derive_key(recipe.seed, "held-out"),
        ranks=ranks,
    )
    if sampler := sampler_for_demonstration_scores(recipe):
        scores = demonstration_scores(policy, sampler, recipe.env, tasks, ranks)
        result = replace(result, demonstration_scores=scores)
    return result


def demonstration_scores(
    policy: Policy,
    sampler: GivenAnswerSampler,
    env: EnvSpec,
    tasks: Sequence[Task],
    ranks: Ranks,
) -> DemonstrationScores | None:
    """The scores of a policy on the demonstrations of tasks; None if no task has a demonstration.

    Args:
        policy: The policy, which is not changed.
        sampler: Reads the demonstrations of a task from its columns.
        env: Makes the prompt of a demonstration that the data give only as an answer text.
        tasks: The held-out tasks.
        ranks: The processes that share the rows; every rank returns the scores of all.
    """
    sums = {"logp": 0.0, "top1": 0.0}  # `top1` is 1 where the token is the likeliest one
    num_tokens = 0
    for start in range(0, len(tasks), TASKS_AT_ONCE):
        tasks_in_memory = tasks[start : start + TASKS_AT_ONCE]
        groups = _read_demonstrations(policy, sampler, env, tasks_in_memory)
        groups = [group for group in groups if group.rollouts]
        if not groups:
            continue
        batch = collate(groups, policy.encode)
        signals = signals_of_all_rows(
            policy, signal_model=policy, batch=batch, names=list(sums), ranks=ranks
        )
        for name in sums:
            sums[name] += signals[name][batch.mask].double().sum().item()
        num_tokens += int(batch.mask.sum())
    if not num_tokens:
        return None
    nll, top1 = -sums["logp"] / num_tokens, sums["top1"] / num_tokens
    return DemonstrationScores(nll, top1, num_tokens)


def _read_demonstrations(
    policy: Policy, sampler: GivenAnswerSampler, env: EnvSpec, tasks: Sequence[Task]
) -> list[Group]:
    """The demonstrations of each task; rejected answers, with reward 0, are left out."""
    actor = policy.actor(key=0)  # no random numbers are drawn

    async def read() -> list[Group]:
        opened_env = open_env(env)
        groups = await asyncio.gather(*(sampler(task, opened_env, actor) for task in tasks))
        return [group.with_rollouts(r for r in group.rollouts if r.reward > 0) for group in groups]

    return run_coroutine(read())
