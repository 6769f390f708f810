"""What methods do from step to step equals what `steps_plain` states, for scripted policies.

Compared: tasks that are drawn again, groups that are trained on, sizes of groups, replayed
rollouts, weights of the reference policy, and numbers that change from step to step. Random draws
are compared by their probabilities. A check is named after its method.
"""

import ast
import re
from pathlib import Path

import pytest

import tests.reference.steps_plain as references
from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.core.component import component_fields, walk
from grupo.core.dynamic_number import DynamicNumber
from grupo.method import Method
from tests.reference.steps import (
    check_numbers,
    check_references,
    check_replay,
    check_sampling,
    check_schedules,
    check_statistics,
    check_task_replay,
    check_tasks,
)

MODULES = (
    check_numbers,
    check_references,
    check_replay,
    check_sampling,
    check_schedules,
    check_statistics,
    check_task_replay,
    check_tasks,
)
CHECKS = {name: check for module in MODULES for name, check in module.CHECKS.items()}

# checks in which a method and its source differ, as the record of the method states
STATED_DEVIATIONS: dict[str, str] = {
    "knapsack_rl: as released": (
        "the function that the record cites counts tasks that were never drawn as unsolved when"
        " rollouts are left, and a task without a rollout beyond the smallest size as worth nothing"
    ),
    "ares: steps without a difficulty": (
        "the release counts every call towards the interval of beta; a controller counts the steps"
        " that have a value"
    ),
}

FILES = sorted(Path(references.__path__[0]).glob("*.py"))


@pytest.mark.parametrize("name", CHECKS)
def test_steps_equal_the_reference(name):
    if name in STATED_DEVIATIONS:
        with pytest.raises(AssertionError):
            CHECKS[name]()
    else:
        CHECKS[name]()


def test_deviations_are_those_of_checks():
    assert set(STATED_DEVIATIONS) <= set(CHECKS)


def changes_between_steps(method: Method) -> bool:
    """A curriculum, a replay, a moving reference, a changing number, or a memory of tasks."""
    slots = component_fields(method)
    requires = method.requires
    return (
        any(slots[name] != getattr(Method(), name) for name in ("curriculum", "replay"))
        or method.reference != Method().reference
        or any(isinstance(part, DynamicNumber) for x in slots.values() for part in walk(x))
        or bool(requires.task_statistics or requires.source_statistics or requires.replay_rules)
    )


def test_every_method_that_changes_between_steps_has_a_check():
    checked = {re.split(r"[:(.]", name)[0] for name in CHECKS if name not in STATED_DEVIATIONS}
    changing = {
        entry.key for entry in methods() if changes_between_steps(parse_method(entry.example))
    }
    assert changing <= checked
    assert checked - changing == {"canon", "gfpo", "xrpo"}  # checked with other arguments


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_references_import_neither_grupo_nor_torch(file):
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.split(".")[0] in ("grupo", "torch")]
