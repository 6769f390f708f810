"""Counts of the code and of its tests, which pages state."""

import importlib
import math
import re
from collections.abc import Callable, Mapping

from grupo.catalogue.entries import methods
from grupo.core.limits import LIMITS
from grupo.storage import fault_injection
from grupo.testing.properties import PROPERTIES
from tests.cli.test_bad_input import ROWS
from tests.distributed.test_failures import POINTS
from tests.distributed.test_invariance import IN_FLOAT64
from tests.helpers.faulty_vllm import TRANSIENT_FAULTS
from tests.helpers.grader_cheats import CHEATS
from tests.helpers.math_pairs import EQUAL, UNEQUAL
from tests.helpers.reference_files import load_cases
from tests.pipeline import test_kills as pipeline_kills
from tests.training import test_determinism, test_model_files
from tests.training.faults.test_resume_kills import CONFIGURATIONS
from tests.trust import test_crash_states, test_io_errors, test_kills, test_random_kills
from tests.trust.test_determinism import RECIPES as RECIPES_UNDER_LOAD


def num_cases(test: Callable[..., None]) -> int:
    """The number of cases of a parametrized test function."""
    marks = getattr(test, "pytestmark", ())
    return math.prod(len(list(mark.args[1])) for mark in marks if mark.name == "parametrize")


KILL_POINTS = sum(
    len(points)
    for name, points in vars(fault_injection).items()
    if name.endswith("_POINTS") and name != "PIPELINE_POINTS"
)
DISK_STATES = (
    test_crash_states.STATES_OF_A_SCENARIO * len(test_crash_states.SCENARIOS)
    + test_crash_states.JOURNAL_STATES
    + test_crash_states.RUN_STATES
)
COUNTS = {
    "kill_points": KILL_POINTS,
    "configurations": len(CONFIGURATIONS),
    "named_kill_points": len(test_kills.KILLS),
    "kills_while_resuming": len(test_kills.KILLS_WHILE_RESUMING),
    "random_kills": test_random_kills.NUM_KILLS,
    "extension_kill_points": len(fault_injection.EXTEND_POINTS),
    "pipeline_kills": sum(
        num_cases(test)
        for name, test in vars(pipeline_kills).items()
        if name.startswith("test_a_") or name.startswith("test_rounds_")
    ),
    "gguf_commands": len(test_model_files.USES),
    "configurations_with_threads": len(test_determinism.EVERY),
    "configurations_under_load": len(RECIPES_UNDER_LOAD),
    "disk_states": DISK_STATES,
    "disk_errors": len(test_io_errors.ERRORS),
    "bad_inputs": len(ROWS),
    "limits": len(LIMITS),
    "cheats": len(CHEATS),
    "equal_pairs": len(EQUAL),
    "other_pairs": len(UNEQUAL),
    "transient_faults": len(TRANSIENT_FAULTS),
    "recorded_cases": len(load_cases()),
    "methods": len(methods()),
    "properties": len(PROPERTIES),
    "rank_recipes": len(IN_FLOAT64),
    "rank_kill_points": len(POINTS),
}


def counts_of_promises(data: Mapping) -> dict[str, int]:
    """The counts above, and the number of cases of each test that a promise names in its cases.

    Args:
        data: The content of docs/promises.toml.
    """
    promises = [promise for section in data["sections"] for promise in section["promises"]]
    named = {
        name: test.partition("::")[0]
        for promise in promises
        for test in promise["tests"]
        for name in re.findall(r"\{(test_\w+)\}", promise.get("cases", ""))
        if test.endswith(f"::{name}")
    }
    counts = {name: num_cases(_function(path, name)) for name, path in named.items()}
    assert 1 not in counts.values(), counts  # a test that is not parametrized is no count
    return COUNTS | counts


def _function(path: str, name: str) -> Callable[..., None]:
    """The test function of this name in a file."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    return getattr(module, name)
