"""Conditions that decide from the evaluation of an earlier stage whether a stage runs."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

from grupo.core.component import component
from grupo.rollouts.eval_scores import metric_value
from grupo.util.exit_codes import EXIT_FAILED, CommandError


class ConditionFailedError(CommandError):
    """The condition of a stage does not hold, and the stage's field `otherwise` is "stop"."""

    exit_code = EXIT_FAILED


class StageCondition(Protocol):
    """A condition on a metric of an evaluation."""

    @property
    def metric(self) -> str:
        """Evaluation metric, such as `eval/sampled`."""
        ...

    def __call__(self, scores: Mapping[str, Any], /) -> bool:
        """Whether the condition holds.

        Args:
            scores: Scores of the evaluation. A metric that was not measured counts as NaN.
        """
        ...


@component
class MetricAtLeast:
    """The metric is `value` or more.

    Args:
        metric: Evaluation metric: `eval/sampled`, `eval/greedy` or `eval/pass@8`.
        value: Smallest value.

    >>> MetricAtLeast("eval/sampled", 0.5)({"sampled": 0.5}), MetricAtLeast("eval/greedy", 0.0)({})
    (True, False)
    """

    metric: str
    value: float

    def __call__(self, scores: Mapping[str, Any]) -> bool:
        return metric_value(scores, self.metric) >= self.value


@component
class MetricAtMost:
    """The metric is `value` or less.

    Args:
        metric: Evaluation metric: `eval/sampled`, `eval/greedy` or `eval/pass@8`.
        value: Largest value.

    >>> MetricAtMost("eval/sampled", 0.9)({"sampled": 0.5})
    True
    """

    metric: str
    value: float

    def __call__(self, scores: Mapping[str, Any]) -> bool:
        return metric_value(scores, self.metric) <= self.value


def describe_value(scores: Mapping[str, Any], metric: str) -> str:
    """The value of a metric in words.

    >>> describe_value({"sampled": 0.25}, "eval/sampled"), describe_value({}, "eval/sampled")
    ('eval/sampled is 0.25', 'eval/sampled was not measured')
    """
    value = metric_value(scores, metric)
    return f"{metric} was not measured" if math.isnan(value) else f"{metric} is {value:.4g}"
