"""Checks of `early_stopping` and `keep`: the numbers that they read are measured in the run."""

import math

from grupo.config.supervised import sampler_for_demonstration_scores
from grupo.core.signal_names import SAMPLER, split_name
from grupo.recipe import Recipe
from grupo.rollouts.eval_scores import check_eval_metric
from grupo.util.errors import ConfigError

KL_OLD = "update/kl_old"
KL_PREFIX = "policy/kl_"


def check_stopping(recipe: Recipe) -> None:
    """Raise `ConfigError` if checkpoints are ranked, or the run is ended, by an unknown number."""
    stopping = recipe.early_stopping
    attempts = recipe.evaluation.attempts
    supervised = sampler_for_demonstration_scores(recipe) is not None
    if not attempts and stopping.min_solve_rate <= 1:
        raise ConfigError(
            f"early_stopping.min_solve_rate: {stopping.min_solve_rate:g}. Allowed with"
            " evaluation.attempts=0, which samples nothing: above 1."
        )
    for field, metric, count in (
        ("keep", recipe.keep.metric, recipe.keep.best),
        ("early_stopping", stopping.metric, stopping.patience),
    ):
        if count or attempts:  # without attempts, the default metric of an unused field is absent
            check_eval_metric(f"{field}.metric", metric, attempts, has_demonstrations=supervised)
        if count:
            _check_evaluated(recipe, "keep.best" if field == "keep" else "early_stopping.patience")
    if stopping.max_kl < math.inf:
        _check_kl_metric(recipe, stopping.kl_metric)


def _check_evaluated(recipe: Recipe, field: str) -> None:
    if recipe.eval_tasks == 0:
        raise ConfigError(f"{field}: eval_tasks is 0: nothing is evaluated. Allowed: 0.")
    if not recipe.evaluation.every:
        raise ConfigError(
            f"{field}: evaluation.every is 0: nothing is evaluated during training. Allowed: 0, or"
            " set evaluation.every, such as --evaluation.every 10."
        )


def _check_kl_metric(recipe: Recipe, metric: str) -> None:
    field = "early_stopping.kl_metric"
    models = {split_name(name)[1] for name in recipe.method.requires.all_signals} - {""}
    measured = [KL_OLD, *sorted(f"{KL_PREFIX}{model}" for model in models - {SAMPLER})]
    if metric.startswith(KL_PREFIX) and metric not in measured:
        raise ConfigError(
            f"{field}: {metric!r} is measured only if the loss has a KL term to this model."
            f" Allowed: {', '.join(measured)}."
        )
