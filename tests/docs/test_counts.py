"""Counts of the code that hand-written pages state are those of the code."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from grupo.catalogue.entries import methods
from grupo.core.limits import LIMITS
from grupo.method import Method
from grupo.storage import fault_injection
from grupo.storage.fault_injection import EXTEND_POINTS
from grupo.testing.properties import PROPERTIES
from grupo.training.callbacks import Callback
from tests.cli.test_bad_input import ROWS
from tests.device import on_policies
from tests.distributed.test_failures import POINTS
from tests.distributed.test_invariance import IN_FLOAT64
from tests.helpers.paths import ROOT
from tests.helpers.reference_files import load_cases
from tests.models.flow_matching import test_flow_report
from tests.report import test_server
from tests.training import test_determinism, test_model_files, test_tokens_per_step
from tests.training.faults import test_best_checkpoints, test_exact_resume
from tests.training.faults.test_resume_kills import CONFIGURATIONS
from tests.trust import test_crash_states, test_io_errors, test_kills, test_random_kills
from tests.trust.test_determinism import RECIPES as RECIPES_UNDER_LOAD

GENERATED = {  # or written beside the results of one run, whose numbers are no count of the code
    *("architecture.md", "bias.md", "choosing_a_method.md", "claims.md", "fidelity.md"),
    *(
        "migrate.md",
        "peers.md",
        "real_model.md",
        "real_runs.md",
        "real_survey.md",
        "smoke_training.md",
    ),
}
PAGES = (
    *("README.md", "TRUST.md", "CONTRIBUTING.md", "SECURITY.md"),
    *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in GENERATED),
)
WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
)
NOUNS = (
    *("methods", "variants", "systems", "packages", "slots", "samplers", "commands", "limits"),
    *("properties", "configurations", "recipes", "kill points", "components", "environments"),
)
# A number, at most two adjectives, a noun of the code: "78 kill points".
STATED = re.compile(
    rf"(?<![\w.,])(\d{{1,3}}(?:,\d{{3}})+|\d+|{'|'.join(WORDS)})\s([a-z]+\s){{0,2}}({'|'.join(NOUNS)})\b",
    re.IGNORECASE,
)


def num_cases(test: Callable[..., None]) -> int:
    """The number of cases of a parametrized test function."""
    marks = getattr(test, "pytestmark", ())
    return math.prod(len(list(mark.args[1])) for mark in marks if mark.name == "parametrize")


NUM_KILL_POINTS = sum(
    len(points)
    for name, points in vars(fault_injection).items()
    if name.endswith("_POINTS") and name != "PIPELINE_POINTS"
)
NUM_DISK_STATES = (
    test_crash_states.STATES_OF_A_SCENARIO * len(test_crash_states.SCENARIOS)
    + test_crash_states.JOURNAL_STATES
    + test_crash_states.RUN_STATES
)
NUM_EVENTS = sum(name.startswith("on_") for name in vars(Callback))
KILLED_WITH_BEST = (
    test_best_checkpoints.test_a_run_killed_while_it_keeps_the_best_ends_with_the_same_checkpoints
)
EQUAL_RUNS = test_exact_resume.test_runs_of_the_same_recipe_are_bitwise_equal
STALENESS = test_tokens_per_step.test_no_token_is_older_than_max_staleness


@dataclass(frozen=True)
class Count:
    """A number that a page states about the code.

    Args:
        page: The page, from the root.
        pattern: Regular expression with one group, the number. Every match states it.
        value: The number in the code.
    """

    page: str
    pattern: str
    value: int


COUNTS = (
    Count("README.md", r"contains (\S+) published variants", len(methods())),
    Count("README.md", r"\| (\S+) methods, freely combined", len(methods())),
    Count("README.md", r"by hand and (\S+) properties for each", len(PROPERTIES)),
    Count("README.md", r"at 1, 2 and 4 for (\S+) recipes", len(IN_FLOAT64)),
    Count("TRUST.md", r"\| (\S+) kill points, first, middle", NUM_KILL_POINTS),
    Count("TRUST.md", r"images, roles, … \| (\S+) configurations", len(CONFIGURATIONS)),
    Count("TRUST.md", r"(\S+) named kill points", len(test_kills.KILLS)),
    Count("TRUST.md", r"(\S+) kills while resuming", len(test_kills.KILLS_WHILE_RESUMING)),
    Count("TRUST.md", r"(\S+) random kills", test_random_kills.NUM_KILLS),
    Count("TRUST.md", r"(\S+) kill points of the extension", len(EXTEND_POINTS)),
    Count("TRUST.md", r"(\S+) kill points, each passage", num_cases(KILLED_WITH_BEST)),
    Count("TRUST.md", r"SHA-256, (\S+) commands", len(test_model_files.USES)),
    Count("TRUST.md", r"(\S+) configurations, 2 runs", num_cases(EQUAL_RUNS)),
    Count("TRUST.md", r"6 steps, 1e-6; (\S+) limits", num_cases(STALENESS)),
    Count("TRUST.md", r"(\S+) configurations, and", len(test_determinism.FAST)),
    Count("TRUST.md", r"3 configurations, and (\S+) in", len(test_determinism.EVERY)),
    Count("TRUST.md", r"what remains. \| (\S+) configurations", len(test_determinism.EVERY)),
    Count("TRUST.md", r"20 runs of (\S+) configurations", len(RECIPES_UNDER_LOAD)),
    Count("TRUST.md", r"(\S+) states of the disk", NUM_DISK_STATES),
    Count("TRUST.md", r"(\S+) errors at each call", len(test_io_errors.ERRORS)),
    Count("TRUST.md", r"\| (\S+) limits \|", len(LIMITS)),
    Count("TRUST.md", r"(\S+) inputs \|", len(ROWS)),
    Count("TRUST.md", r"\| (\S+) cases, 2,323 numbers", len(load_cases())),
    Count("TRUST.md", r"\| (\S+) methods[ ,]", len(methods())),
    Count("TRUST.md", r"\| (\S+) properties of", len(PROPERTIES)),
    Count("TRUST.md", r"properties of (\S+) methods", len(methods())),
    Count(
        "TRUST.md",
        r"4 wrong addresses, (\S+) methods",
        num_cases(test_server.test_methods_other_than_get_are_not_allowed),
    ),
    Count("TRUST.md", r"(\S+) configurations, 1e-10 after", len(IN_FLOAT64)),
    Count("TRUST.md", r"\| (\S+) kill points \|", len(POINTS)),
    Count("docs/assembled.md", r"Each of the (\S+) methods", len(methods())),
    Count("docs/callbacks.md", r"with these (\S+) methods", NUM_EVENTS),
    Count("docs/concepts.md", r"choices of a paper: (\S+) components", len(fields(Method))),
    Count("docs/distributed.md", r"The test has (\S+) recipes", len(IN_FLOAT64)),
    Count("docs/distributed.md", r"all (\S+) methods pass", len(methods())),
    Count("docs/gpu.md", r"a minute: (\S+) kinds of recipes", len(on_policies.FAST)),
    Count("docs/images.md", r"takes a step with\s(\S+) methods", len(test_flow_report.METHODS)),
    Count("docs/runs.md", r"each of (\S+) kill points", NUM_KILL_POINTS),
    Count("docs/runs.md", r", (\S+) configurations", len(CONFIGURATIONS)),
    Count("docs/runs.md", r"(\S+) kill points of the extension", len(EXTEND_POINTS)),
    Count("docs/testing.md", r"(\S+) named kill points", len(test_kills.KILLS)),
    Count("docs/testing.md", r"for (\S+) recipes: synchronous", len(test_kills.RECIPES)),
    Count("docs/testing.md", r"(\S+) kills while resuming", len(test_kills.KILLS_WHILE_RESUMING)),
    Count("docs/testing.md", r"\| (\S+) kills, at least half", test_random_kills.NUM_KILLS),
    Count("docs/testing.md", r"moments, over (\S+) recipes", len(test_random_kills.RECIPES)),
    Count("docs/testing.md", r"(\S+) states of the disk", NUM_DISK_STATES),
    Count("docs/testing.md", r"20 runs of (\S+) recipes", len(RECIPES_UNDER_LOAD)),
)
# Counts that are not of the code: of a result, of an argument, of another page.
OTHER_COUNTS = {
    "README.md": {"Two commands", "eight methods"},
    "TRUST.md": {"7 size limits"},
    "CONTRIBUTING.md": {"two methods"},
    "docs/agents.md": {"two methods", "Two samplers"},
    "docs/bad_input.md": {"two recipes"},
    "docs/command_line.md": {"three small environments"},
    "docs/compare.md": {"eight methods", "two methods", "Fifteen methods"},
    "docs/diffusion_text.md": {"two methods"},
    "docs/graders.md": {"two time limits"},
    "docs/loggers.md": {"three methods"},
    "docs/small_claims.md": {"five recipes"},
}


def number(text: str) -> int:
    """The value of digits or of a word.

    >>> number("1,344"), number("Two")
    (1344, 2)
    """
    text = text.lower()
    return WORDS.index(text) + 2 if text in WORDS else int(text.replace(",", ""))


def wrong_numbers(count: Count, text: str) -> list[str]:
    """The numbers of a page that differ from the code; the pattern if no number matches it."""
    found = re.findall(count.pattern, text)
    return [n for n in found if number(n) != count.value] if found else [count.pattern]


def untested_counts(page: str, text: str) -> list[str]:
    """The counts of a page that no `Count` compares with the code."""
    patterns = [count.pattern for count in COUNTS if count.page == page]
    tested = {match.start(1) for pattern in patterns for match in re.finditer(pattern, text)}
    others = OTHER_COUNTS.get(page, set())
    stated = STATED.finditer(text)
    return [m[0] for m in stated if m.start(1) not in tested and m[0] not in others]


@pytest.mark.parametrize("count", COUNTS, ids=lambda count: f"{count.page}: {count.pattern}")
def test_a_stated_count_is_that_of_the_code(count):
    assert wrong_numbers(count, (ROOT / count.page).read_text()) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_count_of_a_page_is_compared_with_the_code(page):
    assert untested_counts(page, (ROOT / page).read_text()) == []


def test_a_planted_wrong_or_missing_count_is_found():
    count = Count("page.md", r"has (\S+) slots", 9)
    assert wrong_numbers(count, "A method has nine slots.") == []
    assert wrong_numbers(count, "A method has 9 slots, and once it has eight slots.") == ["eight"]
    assert wrong_numbers(count, "A method has slots.") == [count.pattern]


@pytest.mark.parametrize(
    ("sentence", "counts"),
    [
        ("It has 24 packages.", ["24 packages"]),
        ("It has\neight whole new slots.", ["eight whole new slots"]),
        ("It has 1,344 kill points and 2 commands.", ["1,344 kill points", "2 commands"]),
        ("Version 2.60 commands the methods.", []),
    ],
)
def test_a_planted_count_without_a_test_is_found(sentence, counts):
    assert untested_counts("page.md", sentence) == counts


def test_a_count_that_is_not_of_the_code_stands_on_its_page():
    for page, others in OTHER_COUNTS.items():
        stated = {match[0] for match in STATED.finditer((ROOT / page).read_text())}
        assert others <= stated, page
