"""Validation of tasks: columns that a method reads, and components that cannot handle a task."""

import pytest

from grupo.config.validate import MAX_TASKS_CHECKED, check_columns, check_tasks
from grupo.core.types import Task
from grupo.method import Method
from grupo.rollouts.samplers import (
    GroupSampler,
    WithExpertSolution,
)
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
