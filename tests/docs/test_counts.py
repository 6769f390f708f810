"""Counts of the code that hand-written pages state are those of the code."""

import re
from dataclasses import dataclass, fields

import pytest

from grupo.method import Method
from grupo.training.callbacks import Callback
from tests.device import on_policies
from tests.helpers.code_counts import COUNTS as OF_CODE
from tests.helpers.paths import ROOT
from tests.models.flow_matching import test_flow_report
from tests.trust import test_kills, test_random_kills

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
    *("README.md", "CONTRIBUTING.md", "docs/promises.toml"),
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


NUM_EVENTS = sum(name.startswith("on_") for name in vars(Callback))


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
    Count("README.md", r"contains (\S+) published variants", OF_CODE["methods"]),
    Count("README.md", r"\| (\S+) methods, freely combined", OF_CODE["methods"]),
    Count("README.md", r"by hand and (\S+) properties for each", OF_CODE["properties"]),
    Count("README.md", r"at 1, 2 and 4 for (\S+) recipes", OF_CODE["rank_recipes"]),
    Count("docs/assembled.md", r"Each of the (\S+) methods", OF_CODE["methods"]),
    Count("docs/callbacks.md", r"with these (\S+) methods", NUM_EVENTS),
    Count("docs/concepts.md", r"choices of a paper: (\S+) components", len(fields(Method))),
    Count("docs/distributed.md", r"The test has (\S+) recipes", OF_CODE["rank_recipes"]),
    Count("docs/distributed.md", r"all (\S+) methods pass", OF_CODE["methods"]),
    Count("docs/gpu.md", r"a minute: (\S+) kinds of recipes", len(on_policies.FAST)),
    Count("docs/images.md", r"takes a step with\s(\S+) methods", len(test_flow_report.METHODS)),
    Count("docs/runs.md", r"each of (\S+) kill points", OF_CODE["kill_points"]),
    Count("docs/runs.md", r", (\S+) configurations", OF_CODE["configurations"]),
    Count("docs/runs.md", r"(\S+) kill points of the extension", OF_CODE["extension_kill_points"]),
    Count("docs/testing.md", r"(\S+) named kill points", OF_CODE["named_kill_points"]),
    Count("docs/testing.md", r"for (\S+) recipes: synchronous", len(test_kills.RECIPES)),
    Count("docs/testing.md", r"(\S+) kills while resuming", OF_CODE["kills_while_resuming"]),
    Count("docs/testing.md", r"\| (\S+) kills, at least half", OF_CODE["random_kills"]),
    Count("docs/testing.md", r"moments, over (\S+) recipes", len(test_random_kills.RECIPES)),
    Count("docs/testing.md", r"(\S+) states of the disk", OF_CODE["disk_states"]),
    Count("docs/testing.md", r"20 runs of (\S+) recipes", OF_CODE["configurations_under_load"]),
)
# Counts that are not of the code: of a result, of an argument, of another page.
OTHER_COUNTS = {
    "README.md": {"Two commands", "eight methods"},
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
