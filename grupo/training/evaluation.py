"""Evaluation on held-out tasks: attempts, and the likelihood of demonstrations."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from grupo.config.success import with_default_reward_term
from grupo.config.supervised import evaluated_demonstration_sampler
from grupo.core.interfaces import EnvSpec, open_env
from grupo.core.types import Group, Task
from grupo.distributed.base import Ranks
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.demonstration_scores import DemonstrationScores
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.rollouts.samplers import GivenAnswerSampler
from grupo.training.update.collate import collate
from grupo.training.update.signals import evaluate_all
from grupo.util.event_loop import run_coroutine
from grupo.util.rng import derive_key

TASKS_AT_ONCE = 64  # whose batch is in memory


def evaluate_held_out(
    recipe: Recipe, policy: Policy, tasks: Sequence[Task], ranks: Ranks
) -> EvalResult:
    """Attempt the held-out tasks, and score the demonstrations of a supervised method.

    Args:
        recipe: Its evaluation has the number of attempts and the criterion of success.
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
    if sampler := evaluated_demonstration_sampler(recipe):
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
    """The scores of a policy on the demonstrations of tasks; None if these have none.

    Of preferences, the chosen answers are scored.

    Args:
        policy: The policy, which is not changed.
        sampler: Reads the demonstrations.
        env: Its first observation precedes demonstrations that are texts.
        tasks: The held-out tasks.
        ranks: The processes that share the rows; every rank returns the scores of all.
    """
    sums = [0.0, 0.0]
    num_tokens = 0
    for start in range(0, len(tasks), TASKS_AT_ONCE):
        part = tasks[start : start + TASKS_AT_ONCE]
        groups = [
            group for group in _read_demonstrations(policy, sampler, env, part) if group.rollouts
        ]
        if not groups:
            continue
        batch = collate(groups, policy.encode)
        signals = evaluate_all(policy, policy, batch, ["logp", "top1"], ranks)
        for i, name in enumerate(("logp", "top1")):
            sums[i] += signals[name][batch.mask].double().sum().item()
        num_tokens += int(batch.mask.sum())
    if not num_tokens:
        return None
    return DemonstrationScores(-sums[0] / num_tokens, sums[1] / num_tokens, num_tokens)


def _read_demonstrations(
    policy: Policy, sampler: GivenAnswerSampler, env: EnvSpec, tasks: Sequence[Task]
) -> list[Group]:
    actor = policy.actor(0)

    async def read() -> list[Group]:
        opened = open_env(env)
        groups = await asyncio.gather(*(sampler(task, opened, actor) for task in tasks))
        return [
            replace(group, rollouts=tuple(r for r in group.rollouts if r.reward > 0))
            for group in groups
        ]

    return run_coroutine(read())
