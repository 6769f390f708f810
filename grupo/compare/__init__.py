"""Controlled comparisons of recipes over seeds and task sets: `grupo compare`, docs/compare.md."""

from grupo.compare.budget import (
    Budget,
    OptimizerUpdates,
    Seconds,
    Steps,
    Tokens,
    Usage,
    parse_budget,
)
from grupo.compare.differences import Difference
from grupo.compare.experiment import Comparison, RunSpec, TaskSet, recipes_with_methods
from grupo.compare.result import ComparisonResult, ResultRow
from grupo.compare.run import estimate_cost, measure_cost, run_comparison, write_report
from grupo.compare.run_status import RunStatus
from grupo.compare.sequential_design import Decision, SequentialDesign

__all__ = [
    "Budget",
    "Comparison",
    "ComparisonResult",
    "Decision",
    "Difference",
    "OptimizerUpdates",
    "ResultRow",
    "RunSpec",
    "RunStatus",
    "Seconds",
    "SequentialDesign",
    "Steps",
    "TaskSet",
    "Tokens",
    "Usage",
    "estimate_cost",
    "measure_cost",
    "parse_budget",
    "recipes_with_methods",
    "run_comparison",
    "write_report",
]
