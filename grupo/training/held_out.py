"""Evaluation of the policy that is trained on the held-out tasks of its recipe."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.config.success import with_default_reward_term
from grupo.config.supervised import evaluated_demonstration_sampler
from grupo.core.types import Task
from grupo.distributed.base import Ranks
from grupo.models.base import Policy
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import EvalResult, evaluate
from grupo.training.teacher_forcing import demonstration_scores
from grupo.util.rng import derive_key


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
        attempts=evaluation.attempts,
        success=with_default_reward_term(evaluation.success, recipe.env),
        turn_strategy=evaluation.turn_strategy,
        key=derive_key(recipe.seed, "held-out"),
        ranks=ranks,
    )
    if sampler := evaluated_demonstration_sampler(recipe):
        scores = demonstration_scores(policy, sampler, recipe.env, tasks, ranks)
        result = replace(result, demonstrations=scores)
    return result
