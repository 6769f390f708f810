"""Metrics of the evaluations of a run, such as `eval/sampled`, and the steps that score best."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from grupo.rollouts.demonstration_scores import DEMONSTRATION_METRICS, LOWER_IS_BETTER
from grupo.util.errors import ConfigError, suggest

EvalScores = Mapping[str, Mapping[str, Any]]  # scores of each evaluation, by its label
METRIC_PREFIX = "eval/"  # begins the name of each evaluation metric, such as "eval/sampled"
DEFAULT_METRIC = "eval/sampled"


def step_label(step: int) -> str:
    """The label of an evaluation between two steps of a run.

    Args:
        step: Number of steps done before the evaluation.

    >>> step_label(50)
    'step 50'
    """
    return f"step {step}"


def evaluated_step(label: str, steps_done: int) -> int:
    """The number of steps done before an evaluation.

    Args:
        label: The label of the evaluation: "before", "step N" or "after".
        steps_done: Number of steps done before the evaluation "after", the last one of a run.

    >>> evaluated_step("before", 90), evaluated_step("step 50", 90), evaluated_step("after", 90)
    (0, 50, 90)
    """
    steps = {"before": 0, "after": steps_done}
    return steps[label] if label in steps else int(label.removeprefix("step "))


def scores_by_step(eval_scores: EvalScores, num_steps: int) -> dict[int, Mapping[str, Any]]:
    """The scores of each evaluation, by the number of steps done before the evaluation.

    Args:
        eval_scores: The scores of each evaluation, by its label: "before", "step N" or "after".
        num_steps: Number of steps done before the evaluation "after".

    >>> scores_by_step({"before": {"a": 1}, "step 50": {"a": 2}, "after": {"a": 3}}, 90)
    {0: {'a': 1}, 50: {'a': 2}, 90: {'a': 3}}
    """
    return {evaluated_step(label, num_steps): scores for label, scores in eval_scores.items()}


def metric_value(scores: Mapping[str, Any], metric: str) -> float:
    """The value of a metric in the scores of an evaluation; NaN if the metric was not measured."""
    return float(scores.get(metric.removeprefix(METRIC_PREFIX), math.nan))


def ranked_value(scores: Mapping[str, Any], metric: str) -> float:
    """The value of a metric for comparisons: larger is better, so a loss is negated.

    >>> ranked_value({"nll": 2.5}, "eval/nll"), ranked_value({"greedy": 0.5}, "eval/greedy")
    (-2.5, 0.5)
    """
    value = metric_value(scores, metric)
    return -value if is_lower_better(metric) else value


def is_lower_better(metric: str) -> bool:
    """Whether smaller values of an evaluation metric are better."""
    return metric.removeprefix(METRIC_PREFIX) in LOWER_IS_BETTER


def best_steps(eval_scores: EvalScores, num_steps: int, metric: str, count: int) -> list[int]:
    """The evaluated steps with the best values of a metric, the best step first.

    Of steps with equal values, the earlier one comes first. The evaluation before training is left
    out, and so are evaluations in which the metric is NaN.

    Args:
        eval_scores: The scores of each evaluation, by its label.
        num_steps: Number of steps done before the evaluation "after".
        metric: Name of the metric.
        count: Largest number of steps to return.

    >>> scores = {"before": {"greedy": 9}, "step 1": {"greedy": 0.5}, "step 2": {"greedy": 0.7}}
    >>> best_steps({**scores, "after": {"greedy": 0.5}}, 3, "eval/greedy", 2)
    [2, 1]
    """
    values = {
        step: ranked_value(scores, metric)
        for step, scores in scores_by_step(eval_scores, num_steps).items()
        if step > 0
    }
    scored = [step for step, value in values.items() if not math.isnan(value)]
    return sorted(scored, key=lambda step: (-values[step], step))[:count]


def check_eval_metric(
    field: str, metric: str, attempts: int, *, has_demonstrations: bool = False
) -> None:
    """Raise `ConfigError` if an evaluation has no metric of this name.

    Args:
        field: Name of the recipe's field that holds the name, for the message.
        metric: Name of the metric.
        attempts: Number of sampled rollouts per task in the evaluation.
        has_demonstrations: Whether held-out demonstrations are evaluated.
    """
    names = [*score_names(attempts), *DEMONSTRATION_METRICS * has_demonstrations]
    allowed = [f"{METRIC_PREFIX}{name}" for name in names]
    if metric not in allowed:
        raise ConfigError(
            f"{field}: {metric!r} is no evaluation metric. {suggest(metric, allowed)}"
        )


def score_names(attempts: int) -> Sequence[str]:
    """The names of the scores of an evaluation with this number of sampled rollouts per task.

    >>> score_names(6)
    ('greedy', 'sampled', 'pass@1', 'pass@2', 'pass@4', 'pass@6')
    """
    if not attempts:
        return ()
    return ("greedy", "sampled", *(f"pass@{k}" for k in pass_at_k_values(attempts)))


def pass_at_k_values(attempts: int) -> list[int]:
    """The values of k for which pass@k is computed: powers of 2, and the number of attempts.

    >>> pass_at_k_values(6)
    [1, 2, 4, 6]
    """
    return sorted({attempts, *(2**i for i in range(attempts.bit_length()))})
