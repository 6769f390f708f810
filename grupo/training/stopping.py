"""The end of a run: when it ends, which of its checkpoints are the best, and its summary."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grupo.recipe import EarlyStopping, Recipe
from grupo.rollouts.eval_scores import (
    EvalScores,
    best_steps,
    is_lower_better,
    metric_value,
    ranked_value,
    scores_by_step,
)
from grupo.storage.checkpoint import Checkpoint
from grupo.util.errors import ConfigError

EXECUTIONS_METRIC = "usage/executions"  # which `ProgramReward` counts


@dataclass(frozen=True)
class StopInputs:
    """The numbers that decide whether a run ends; each checkpoint contains them.

    Args:
        step: Number of steps done.
        eval_scores: Scores of each evaluation, by its label.
        generated_tokens: Number of tokens generated for training, without evaluations.
        training_seconds: Seconds of all steps. A step that is repeated after a resume has the
            seconds of its first execution, so that a resume does not change the end of the run.
        early_stopping_kl: The metric `EarlyStopping.kl_metric` of the last step, in nats per token;
            NaN if it was not measured.
        executions: Number of programs of answers that rewards have executed in training.
    """

    step: int
    eval_scores: EvalScores
    generated_tokens: int
    training_seconds: float
    early_stopping_kl: float
    executions: float = 0.0

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint) -> "StopInputs":
        """The numbers of a run when a checkpoint was saved."""
        names = ("eval_scores", "generated_tokens", "training_seconds", "kl")
        executions = checkpoint.data["metric_totals"].get(EXECUTIONS_METRIC, 0.0)
        values = (checkpoint.data[name] for name in names)
        return cls(checkpoint.step, *values, executions=executions)


def stop_reason(recipe: Recipe, inputs: StopInputs) -> str:
    """The reason for which a run ends, with the recipe's field that decides; "" if it continues.

    Args:
        recipe: The recipe of the run.
        inputs: The numbers after the last step.
    """
    if inputs.step >= recipe.max_steps:
        return f"max_steps is {recipe.max_steps}"
    return next(_early_reasons(recipe.early_stopping, inputs), "")


def _early_reasons(limits: EarlyStopping, inputs: StopInputs) -> Iterator[str]:
    """The reasons to end a run before `max_steps`."""
    for last_scores in list(inputs.eval_scores.values())[-1:]:
        solve_rate = metric_value(last_scores, "eval/sampled")
        if solve_rate >= limits.min_solve_rate:
            yield (
                f"eval/sampled is {solve_rate:.4g}, early_stopping.min_solve_rate is"
                f" {limits.min_solve_rate:g}"
            )
    amounts = (
        ("max_tokens", inputs.generated_tokens, limits.max_tokens, "tokens were generated"),
        ("max_seconds", inputs.training_seconds, limits.max_seconds, "seconds were trained"),
        ("max_executions", inputs.executions, limits.max_executions, "programs were executed"),
    )
    for field, used, limit, words in amounts:
        if limit and used >= limit:
            yield f"{used:,.0f} {words}, early_stopping.{field} is {limit:,.0f}"
    if limits.patience:
        yield from _patience_reasons(limits, inputs)
    if inputs.early_stopping_kl > limits.max_kl:  # False for NaN: no limit, or no updates
        yield (
            f"{limits.kl_metric} is {inputs.early_stopping_kl:.4g},"
            f" early_stopping.max_kl is {limits.max_kl:g}"
        )


def _patience_reasons(limits: EarlyStopping, inputs: StopInputs) -> Iterator[str]:
    """The reason to end a run whose metric did not improve in the last `patience` evaluations."""
    best_step = 0
    best_value = -math.inf  # of `ranked_value`: larger is better
    num_not_better = 0  # evaluations since `best_step`
    for step, scores in scores_by_step(inputs.eval_scores, inputs.step).items():
        value = ranked_value(scores, limits.metric)
        if math.isnan(value):
            continue  # no rollout could be scored: neither better nor worse
        if value > best_value + limits.min_delta or best_value == -math.inf:
            best_value, best_step, num_not_better = value, step, 0
        else:
            num_not_better += 1
    if num_not_better >= limits.patience:
        improved = "fallen below" if is_lower_better(limits.metric) else "exceeded"
        yield (
            f"{limits.metric} has not {improved} {abs(best_value):.4g}, its value at step"
            f" {best_step}, by more than {limits.min_delta:g} in {num_not_better} evaluations,"
            f" early_stopping.patience is {limits.patience}"
        )


def kl_for_early_stopping(limits: EarlyStopping, metrics: Mapping[str, float]) -> float:
    """The KL divergence that `max_kl` limits; NaN if there is no limit or the step has no updates.

    Args:
        limits: The conditions that end the run.
        metrics: The metrics of the step.

    Raises:
        ConfigError: The step has updates, but not the metric `kl_metric`.
    """
    if limits.max_kl == math.inf:
        return math.nan
    if limits.kl_metric not in metrics and "loss" in metrics:
        raise ConfigError(
            f"early_stopping.kl_metric: {limits.kl_metric!r} is not measured by this method."
            " Allowed: update/kl_old, or policy/kl_ref with a KL term in the loss."
        )
    return metrics.get(limits.kl_metric, math.nan)


def best_steps_to_keep(recipe: Recipe, step: int, eval_scores: Mapping[str, Any]) -> list[int]:
    """The steps with the best evaluations, whose checkpoints are kept, best first.

    Args:
        recipe: The recipe of the run.
        step: Number of steps done.
        eval_scores: Scores of each evaluation, by its label.
    """
    return best_steps(eval_scores, step, recipe.keep.metric, recipe.keep.best)


def run_summary(recipe: Recipe, step: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of `summary.json`.

    A run that stopped early may have generated rollouts ahead and never trained on them. `tokens`
    includes their tokens, and `ledger` has the number as `tokens/generated_ahead`.

    Args:
        recipe: The recipe of the run.
        step: Number of steps done.
        data: The plain data of a checkpoint after these steps.
    """
    num_ahead = sum(sum(tokens.values()) for _, _, tokens, _ in data["rollout_queue"])
    ahead_metric = {"tokens/generated_ahead": float(num_ahead)} if num_ahead else {}
    totals = data["metric_totals"] | ahead_metric
    return {
        "method": repr(recipe.method),
        "model": str(recipe.policy.model),
        "steps": step,
        "stop_reason": data["stop_reason"],
        "best_steps": best_steps_to_keep(recipe, step, data["eval_scores"]),
        "seconds": round(data["total_seconds"], 2),
        "tokens": data["generated_tokens"] + num_ahead,
        "ledger": {name: round(x, 3) for name, x in totals.items()},
        "failed_rollouts": data["failed_rollouts"],
        "held_out": data["eval_scores"],
    }
