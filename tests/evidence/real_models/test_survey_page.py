"""The page of a survey of families, from results by hand."""

from dataclasses import replace

import pytest

from grupo.evidence.real_models.survey_page import GROUPS, code_span, family_page, group_of
from grupo.evidence.survey import FamilySurvey, ShownAnswer, TaskFamily
from grupo.evidence.survey.family_survey import append_survey
from grupo.rewards import ExactMatch

SURVEY = FamilySurvey(
    tasks=50,
    attempts=16,
    failed=0,
    greedy=(0.5, 0.36, 0.64),
    pass_at_k={"1": (0.125, 0.08, 0.17), "8": (0.6, 0.5, 0.7)},
    mixed=0.7,
    tokens=8_000,
    length_mean=9.5,
    truncated_frac=0.25,
    seconds=80.0,
    right=ShownAnswer("2 + 2", "4", "It is\n4"),
    wrong=ShownAnswer("2 + 2", "4", "`5` | 6"),
)
HARD = replace(SURVEY, pass_at_k={"1": (0.0, 0.0, 0.0), "8": (0.0, 0.0, 0.0)}, right=None)
EASY = replace(SURVEY, pass_at_k={"1": (0.9, 0.8, 1.0), "8": (0.95, 0.9, 1.0)}, wrong=None)


def rows(rng):
    yield {"question": "2 + 2", "answer": "4"}


FAMILIES = {
    name: TaskFamily(name, rows, ("{question}", "{question} ="), ExactMatch(), guess=guess)
    for name, guess in (("hard", 0.0), ("middle", 0.5), ("easy", 0.0))
}


@pytest.fixture
def page(tmp_path) -> str:
    file = tmp_path / "results.jsonl"
    for name, survey in (("hard", HARD), ("middle", SURVEY), ("easy", EASY)):
        append_survey(file, {"part": "survey", "family": name, "wording": "{question}"}, survey)
    compared = replace(SURVEY, tasks=10, attempts=4)
    append_survey(
        file, {"part": "wordings", "family": "middle", "wording": "{question} ="}, compared
    )
    return family_page(file, FAMILIES, "# Title")


def test_families_are_sorted_by_pass_at_1(page):
    table = [line for line in page.splitlines() if line.startswith("| [")]
    assert [line.split("]")[0] for line in table] == ["| [easy", "| [middle", "| [hard"]
    assert table[1] == (
        "| [middle](#middle) | 12.5 (8.0 to 17.0) | 60.0 (50.0 to 70.0) | 50.0 (36.0 to 64.0)"
        " | 70 | 50 | 9.5 | 25 |"
    )
    assert "3 families, 24,000 generated tokens." in page


def test_families_are_grouped_by_pass_at_8(page):
    assert [group_of(x) for x in (SURVEY, HARD, EASY)] == list(GROUPS)
    sections = {part.splitlines()[0]: part for part in page.split("\n## ")}
    assert sections[GROUPS[0]].endswith("`middle`\n")
    assert sections[GROUPS[1]].endswith("`hard`\n")
    assert sections[GROUPS[2]].endswith("`easy`\n")


@pytest.mark.parametrize(("value", "group"), [(0.05, 0), (0.9, 0), (0.0499, 1), (0.9001, 2)])
def test_the_bounds_of_a_group_belong_to_the_middle(value, group):
    survey = replace(SURVEY, pass_at_k={"8": (value, 0.0, 1.0)})
    assert group_of(survey) == GROUPS[group]


def test_wordings_and_examples_are_shown(page):
    assert "on 10 tasks that are not among those of the table, with 4 answers each" in page
    assert "| middle | `{question} =` | 12 | 50 |" in page
    middle = page.split("### middle")[1].split("###")[0].strip().splitlines()
    assert middle == [
        "* prompt: `2 + 2`",
        "* reference answer: `4`",
        "* right: `It is ⏎ 4`",
        "* wrong: `` `5` | 6 ``",
    ]
    assert "* right: none" in page.split("### hard")[1]


def test_an_answer_to_another_prompt_is_shown_with_it(tmp_path):
    wrong = ShownAnswer("3 + 3", "6", "7")
    file = tmp_path / "results.jsonl"
    labels = {"part": "survey", "family": "middle", "wording": "{question}"}
    append_survey(file, labels, replace(SURVEY, wrong=wrong))
    assert "* wrong: `7`, to the prompt `3 + 3`" in family_page(file, FAMILIES, "# Title")


def test_an_empty_answer_is_named():
    assert code_span(" \n") == "`(empty)`"
