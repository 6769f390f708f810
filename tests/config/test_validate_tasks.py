"""Validation of tasks: columns that a method reads, and components that cannot handle a task."""

import pytest

from grupo import CausalLM, Recipe, RewardTerm, SingleTurn
from grupo.config.validate import MAX_TASKS_CHECKED, check_columns, check_tasks
from grupo.config.validate_tasks import task_notes
from grupo.core.types import Task
from grupo.method import Method
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers import (
    GroupSampler,
    WithExpertSolution,
)
from grupo.tasks import ReasoningGym
from grupo.util.errors import ConfigError


def test_the_first_tasks_of_every_source_are_validated():
    class Validator:
        def __init__(self) -> None:
            self.validated = []

        def validate_tasks(self, tasks) -> None:
            self.validated += tasks

    validator = Validator()
    few = [Task("few", "?")]
    many = [Task("many", "?")] * (MAX_TASKS_CHECKED + 1)
    check_tasks(validator, few, many)
    assert validator.validated == [*few, *many[:-1]]


def test_missing_column_is_rejected():
    method = Method(sampler=WithExpertSolution(GroupSampler(2), column="proof"))
    with pytest.raises(ConfigError, match="reads the column 'proof', which no task has"):
        check_columns(method, [Task("a", "?", columns={"solution": "!"})])
    check_columns(method, [Task("a", "?"), Task("b", "?", columns={"proof": "!"})])


def test_tasks_without_a_reference_answer_are_counted():
    tasks = [Task("a", "1 + 1 =", "2"), Task("b", "1 + 2 =", location="t.jsonl, line 2")]
    recipe = Recipe(
        CausalLM("m"),
        SingleTurn((RewardTerm("x", ExactMatch()),)),
        ReasoningGym("basic_arithmetic"),
        1,
    )
    (note,) = task_notes(recipe.replace(prompts_per_step=1), tasks, [Task("c", "3 =", "3")])
    assert note == ("tasks: 1 of 2 training tasks have no reference answer, as t.jsonl, line 2.")
