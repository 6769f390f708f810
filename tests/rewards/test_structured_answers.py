"""Cells of tables, lists in order and outputs of programs, by hand."""

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import (
    AnswerList,
    CellShare,
    InsideTag,
    SameData,
    last_json_block,
    unchanged,
    without_case,
)
from grupo.util.errors import ConfigError

ZEBRA = {
    "header": ["house", "colour", "pet"],
    "rows": [["1", "red", "cat"], ["2", "blue", "dog"]],
}


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


def scores(reward, reference_answer, *texts):
    return reward(Task("k", "?", reference_answer), list(map(rollout, texts)))


def test_four_of_six_cells_are_two_thirds():
    answers = [
        '{"rows": [["1", "red", "dog"], ["2", "blue", "cat"]]}',
        "{'rows': [('1', 'red', 'cat'), ('2', 'blue', 'dog')]}",
        '[["1", "red", "cat"], ["2", "green", "dog"]]',
        '{"rows": [["2", "blue", "dog"], ["1", "red", "cat"]]}',
    ]
    assert scores(CellShare(), ZEBRA, *answers) == [pytest.approx(4 / 6), 1.0, 5 / 6, 0.0]


@pytest.mark.parametrize(
    "answer",
    [
        '[["1", "red", "cat"]]',
        '[["1", "red", "cat"], ["2", "blue", "dog"], ["2", "blue", "dog"]]',
        '[["1", "red", "cat", "dog"], ["2", "blue", "dog"]]',
        '["1", "red", "cat", "2", "blue", "dog"]',
        '{"cells": []}',
        "1 red cat",
        "[" * 5000,
        "",
    ],
)
def test_a_table_of_another_shape_has_no_right_cell(answer):
    assert scores(CellShare(), ZEBRA, answer) == [0.0]


def test_a_number_is_neither_its_text_nor_a_bool():
    assert scores(CellShare(), [[1, "2"]], "[[1, 2]]", "[[true, '2']]") == [0.5, 0.0]
    assert scores(CellShare(), [[1, "2"]], '[[1.0, "2"]]') == [1.0]


def test_an_order_is_right_as_a_whole_or_wrong():
    reward = SameData(InsideTag("answer"), without_case)
    answers = (
        "<answer>['a', 'b', 'c']</answer>",
        "<answer>['a', 'c', 'b']</answer>",
        '<answer>["A", "b ", "C"]</answer>',
        "<answer>[a, b, c]</answer>",
        "['a', 'b', 'c']",
    )
    assert scores(reward, ["a", "b", "c"], *answers) == [1.0, 0.0, 1.0, 0.0, 0.0]


def test_predicted_outputs_of_programs_are_compared_as_data():
    reward = SameData(last_json_block)
    truth = '{"output": {"a": [1, 2.5], "b": true}}'
    answers = (
        'So:\n```json\n{"output": {"b": true, "a": [1, 2.5]}}\n```',
        '{"output": {"a": [1, 2.5], "b": 1}}',
        '```json\n{"output": 0}\n```\n```\n{"output": {"a": [1, 2.5], "b": true}}\n```',
        '```json\n{"output": {"a": [1, 2.5], "b": true}}',
        '{"output": {"a": [2.5, 1], "b": true}}',
    )
    assert scores(reward, truth, *answers) == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert scores(SameData(), ["A"], '["a"]') == [0.0]


def test_a_grid_is_exact():
    grid = [[0, 1], [2, 0]]
    assert scores(SameData(), grid, "[[0, 1], [2, 0]]", "[[0, 1], [2, 1]]") == [1.0, 0.0]


def test_answers_about_tables_are_in_any_order_and_complete():
    answers = (r"\boxed{3|1}", "1 | 3", "1|3|3", "1", "1|2", "1,3", "1.0|$3", "")
    expected = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    assert scores(AnswerList(), "1|3", *answers) == expected
    assert scores(AnswerList(), "Ann", "ann", "bob", "ann|ann") == [1.0, 0.0, 0.0]
    assert scores(AnswerList(";"), "a|b;c", "c; A|B") == [1.0]


def test_long_answers_score_0():
    many = ["a"] * 10_001
    assert scores(AnswerList(), "|".join(many), "|".join(many)) == [0.0]
    assert scores(SameData(), many, str(many)) == [0.0]
    assert scores(SameData(), many[:100], str(many[:100])) == [1.0]


@pytest.mark.parametrize(
    ("reward", "reference_answer", "message"),
    [
        (CellShare(), "x", r"t, line 1: the reference answer 'x'\. Allowed: data"),
        (CellShare(), [], r"the reference answer '\[\]'\. Allowed: a list of rows"),
        (CellShare(), [1, 2], r"the reference answer '\[1, 2\]'\. Allowed: a list of rows"),
        (SameData(), "a, b", r"the reference answer 'a, b'\. Allowed: data, as values or in JSON"),
        (SameData(), None, r"the reference answer 'None'\. Allowed: data"),
        (AnswerList(), "1||2", r"the reference answer '1\|\|2'\. Allowed: answers"),
        (AnswerList(), None, r"Task k has no reference answer"),
    ],
)
def test_reference_answers_of_another_form_are_config_errors(reward, reference_answer, message):
    with pytest.raises(ConfigError, match=message):
        reward.validate_tasks([Task("k", "?", reference_answer, location="t, line 1")])


@pytest.mark.parametrize(
    "reward",
    [CellShare(InsideTag("answer")), SameData(last_json_block, without_case), AnswerList(";")],
)
def test_they_return_from_their_records(reward):
    assert from_data(to_data(reward)) == reward
    assert reward.reward_range == (0.0, 1.0)


def test_texts_keep_their_case_unless_the_normalizer_removes_it():
    assert unchanged(["A"]) == ["A"]
    assert without_case({"k": [" A", 1]}) == {"k": ["a", 1]}
