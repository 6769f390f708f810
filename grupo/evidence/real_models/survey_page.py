"""A survey of task families as a page: a table by pass@1, groups by pass@8, wordings, examples."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from grupo.compare.table_formats import markdown
from grupo.evidence.survey.family import TaskFamily
from grupo.evidence.survey.family_survey import Bounds, FamilySurvey, ShownAnswer, read_surveys

PART_SURVEY, PART_WORDINGS = "survey", "wordings"
COMPARABLE = (0.05, 0.9)  # pass@8 of families on which methods can be compared
COLUMNS = ["family", "pass@1", "pass@8", "greedy", "mixed", "guess", "tokens", "truncated"]
GROUPS = ("Methods can be compared on these", "Too hard", "Too easy")
ABOUT_GROUPS = (
    "pass@8 is between 5 and 90 %: some groups of eight answers have a right one, and not all.",
    "pass@8 is below 5 %: nearly all groups of eight answers have the same reward.",
    "pass@8 is above 90 %. GRPO may still raise pass@1; `guess` tells where that needs no skill.",
)
LEGEND = """\
Percentages, with 95 % bootstrap intervals over tasks, as by `grupo eval`. An interval from 0 to 0
says that no answer was right; the true share may still be 6 % (three in the number of tasks).
`mixed` is the share of tasks that some of the sampled answers solve and others do not: their
groups have a gradient. `guess` is the share that a constant or random answer solves. `tokens` is
the mean length of an answer, `truncated` the share of answers that the token limit ended."""


def family_page(file: Path, families: Mapping[str, TaskFamily], introduction: str) -> str:
    """The page of the results in a file.

    Args:
        file: The file.
        families: The families by name.
        introduction: The beginning of the page, with its title.
    """
    lines = list(read_surveys(file))
    unsorted = {labels["family"]: x for labels, x in lines if labels["part"] == PART_SURVEY}
    surveys = dict(sorted(unsorted.items(), key=lambda item: (-item[1].pass_at_k["1"][0], item[0])))
    compared = {
        (labels["family"], labels["wording"]): x
        for labels, x in lines
        if labels["part"] == PART_WORDINGS
    }
    parts = [
        introduction,
        *_table(surveys, families),
        *_groups(surveys),
        *_wordings(surveys, families, compared),
        *_examples(surveys),
    ]
    return "\n\n".join(parts) + "\n"


def _table(
    surveys: Mapping[str, FamilySurvey], families: Mapping[str, TaskFamily]
) -> Iterator[str]:
    tokens = sum(survey.tokens for survey in surveys.values())
    yield f"## Results\n\n{LEGEND}"
    yield markdown(
        [COLUMNS, *(_row(name, x, families[name]) for name, x in surveys.items())]
    ).rstrip()
    yield f"{len(surveys)} families, {tokens:,} generated tokens."


def _row(name: str, survey: FamilySurvey, family: TaskFamily) -> list[str]:
    return [
        f"[{name}](#{name})",
        _interval(survey.pass_at_k["1"]),
        _interval(survey.pass_at_k["8"]),
        _interval(survey.greedy),
        f"{100 * survey.mixed:.0f}",
        f"{100 * family.guess:.0f}" if family.guess else "",
        f"{survey.length_mean:.1f}",
        f"{100 * survey.truncated_frac:.0f}",
    ]


def _interval(bounds: Bounds) -> str:
    value, low, high = (100 * x for x in bounds)
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def group_of(survey: FamilySurvey) -> str:
    """The group of a family by its pass@8: one of `GROUPS`."""
    value = survey.pass_at_k["8"][0]
    low, high = COMPARABLE
    return GROUPS[0] if low <= value <= high else GROUPS[1] if value < low else GROUPS[2]


def _groups(surveys: Mapping[str, FamilySurvey]) -> Iterator[str]:
    for group, about in zip(GROUPS, ABOUT_GROUPS, strict=True):
        names = [f"`{name}`" for name, survey in surveys.items() if group_of(survey) == group]
        yield f"## {group}\n\n{about}\n\n{', '.join(names) or 'None.'}"


def _wordings(
    surveys: Mapping[str, FamilySurvey],
    families: Mapping[str, TaskFamily],
    compared: Mapping[tuple[str, str], FamilySurvey],
) -> Iterator[str]:
    """The comparison of wordings, the one that is used first."""
    if not compared:
        return
    first = next(iter(compared.values()))
    rows = [
        [name, code_span(wording), *(f"{100 * x[0]:.0f}" for x in _rates(survey))]
        for name in surveys
        for wording in families[name].wordings
        if (survey := compared.get((name, wording)))
    ]
    yield (
        f"## Wordings\n\nThe first wording of each family is used. Wordings were compared on"
        f" {first.tasks} tasks that are not among those of the table, with {first.attempts} answers"
        " each, in percent, and the one with the best pass@1 was kept; between equal ones, that"
        " with the better greedy answers."
    )
    yield markdown([["family", "wording", "pass@1", "greedy"], *rows]).rstrip()


def _rates(survey: FamilySurvey) -> tuple[Bounds, Bounds]:
    return survey.pass_at_k["1"], survey.greedy


def _examples(surveys: Mapping[str, FamilySurvey]) -> Iterator[str]:
    yield "## Examples\n\nA right and a wrong answer of each family; ⏎ is a new line."
    for name, survey in surveys.items():
        shown = survey.right or survey.wrong
        assert shown, "a family has at least one answer"
        yield "\n".join([f"### {name}", "", *_example(shown, survey.right, survey.wrong)])


def _example(
    shown: ShownAnswer, right: ShownAnswer | None, wrong: ShownAnswer | None
) -> Iterator[str]:
    yield f"* prompt: {code_span(shown.prompt)}"
    if shown.reference_answer:
        yield f"* reference answer: {code_span(shown.reference_answer)}"
    yield f"* right: {code_span(right.answer) if right else 'none'}"
    if wrong is None:
        yield "* wrong: none"
    elif wrong.prompt == shown.prompt:
        yield f"* wrong: {code_span(wrong.answer)}"
    else:
        yield f"* wrong: {code_span(wrong.answer)}, to the prompt {code_span(wrong.prompt)}"


def code_span(text: str) -> str:
    """The text as code on one line of Markdown, whatever it contains.

    >>> code_span("a\\nb"), code_span("`a`")
    ('`a ⏎ b`', '`` `a` ``')
    """
    line = " ⏎ ".join(" ".join(part.split()) for part in text.strip().split("\n") if part.strip())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " * bool(longest)
    return f"{fence}{space}{line or '(empty)'}{space}{fence}"
