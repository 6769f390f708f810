"""Options, numbers with a tolerance, and sets of solutions: cases by hand and attacks."""

import time

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.rewards import CheckedSolutions, MultipleChoice, NumberWithin, SetOfSolutions
from grupo.rewards.closed_answers import parse_number
from grupo.util.errors import ConfigError


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


OPTIONS = ["red", "Dark blue", "A green one", "None of these"]


def choice(reference_answer, options=OPTIONS):
    columns = {} if options is None else {"options": options}
    return Task("k", "?", reference_answer, columns=columns, location="t.jsonl, line 2")


@pytest.mark.parametrize(
    "text",
    [
        *("B", "b", "(B)", "B.", "B)", "(b) Dark blue", "B: dark  blue.", "Dark blue", "**B**"),
        *("The answer is B.", "the correct answer is (B)", "option B", r"\boxed{B}", "$B$"),
        *(r"\boxed{\text{B}}", r"<think>A</think> B", r"A or \boxed{B}"),
    ],
)
def test_the_right_option_scores_one_by_letter_or_text(text):
    assert MultipleChoice().score(choice("B"), rollout(text)) == 1.0
    assert MultipleChoice().score(choice("dark blue"), rollout(text)) == 1.0
    assert MultipleChoice().score(choice(1), rollout(text)) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "A",
            "D",
            "E",
            "A B C D",
            "A, B, C, D",
            "ABCD",
            "A/B",
            "A or B",
            "B and C",
            "B C",
        ),
        *("B. red", "(B) red", "red, Dark blue", "not B", "B is wrong", "B? No, A", "BB", "Б", "В"),  # noqa: RUF001
        *("Because", "Dark blue is wrong", r"\boxed{A} \boxed{", r"\boxed{A, B}", "<think>B"),
        *(
            "\N{CANADIAN SYLLABICS CARRIER KHE}",
            "\N{FULLWIDTH LATIN CAPITAL LETTER B}",
            "1",
            "option",
            "B" * 2001,
            "( " * 900 + "B",
        ),
    ],
)
def test_other_options_and_lists_of_options_score_zero(text):
    assert MultipleChoice().score(choice("B"), rollout(text)) == 0.0


def test_without_texts_the_letter_counts():
    texts = ["C", "C. anything", "D"]
    assert MultipleChoice()(choice("C", None), list(map(rollout, texts))) == [1.0, 0.0, 0.0]


def test_options_may_have_labels_of_their_own():
    labelled = choice("B", ["A. red", "B. blue"])
    assert MultipleChoice()(labelled, [rollout("blue"), rollout("B. blue")]) == [1.0, 1.0]
    by_label = choice("Y", {"X": "red", "Y": "blue"})
    assert MultipleChoice()(by_label, [rollout("y"), rollout("blue"), rollout("B")]) == [1, 1, 0]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (
            choice("E"),
            "line 2: the reference answer 'E' is none of the options. Allowed: A, B, C, D",
        ),
        (choice("B", "red"), "line 2, column 'options': red. Allowed: a list"),
        (choice(7), "the reference answer '7' is none"),
    ],
)
def test_tasks_without_a_right_option_are_config_errors(task, message):
    with pytest.raises(ConfigError) as error:
        MultipleChoice().validate_tasks([task])
    assert message in str(error.value).replace("'red'", "red")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("4", 4), ("-4.5", -4.5), ("+.5", 0.5), ("1,250", 1250), ("1e3", 1000), ("$3.50", 3.5)),
        *(
            ("3 km/h", 3),
            ("12.5%", 12.5),
            (r"12 \%", 12),
            ("\N{MINUS SIGN}2", -2),
            ("$4$", 4),
            ("7 dollars.", 7),
        ),
    ],
)
def test_numbers_are_parsed_without_units(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "four",
            "nan",
            "inf",
            "-inf",
            "1e400",
            "1e999999999",
            "٣",
            "²",
            "1,2",
            "1 2",
            "1 or 2",
        ),
        *(
            "3 to 5",
            "3-5",
            "3 ± 1",
            "4 million",
            "4k",
            "not 4",
            "= 4",
            "4 squared x y",
            "0x10",
            "1_0",
        ),
        *("4" * 400, "4; 5", "4 4"),
    ],
)
def test_other_texts_are_no_numbers(text):
    assert parse_number(text) != parse_number(text)
    assert NumberWithin(relative=1e9).score(Task("k", "?", 4), rollout(text)) == 0.0


def test_the_tolerance_is_the_larger_of_both():
    task = Task("k", "?", "200")
    texts = [rollout(text) for text in ("200", "202", "202.1", "198", "-200")]
    assert NumberWithin()(task, texts) == [1, 0, 0, 0, 0]
    assert NumberWithin(relative=0.01)(task, texts) == [1, 1, 0, 1, 0]
    assert NumberWithin(absolute=2.5)(task, texts) == [1, 1, 1, 1, 0]
    assert NumberWithin(relative=0.01, absolute=2.5)(task, texts) == [1, 1, 1, 1, 0]
    assert NumberWithin(absolute=0.1).score(Task("k", "?", "0.2"), rollout("0.3")) == 1.0


def test_a_reference_answer_that_is_no_number_is_a_config_error():
    with pytest.raises(ConfigError, match=r"t, line 1: the reference answer 'many'.*a number"):
        NumberWithin().validate_tasks([Task("k", "?", "many", location="t, line 1")])


PAIRS = Task("k", "?", [[1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *(("[[1, 2], [2, 1]]", 1.0), ("[[2, 1], [1, 2]]", 1.0), (r"\boxed{[[1, 2], [2, 1]]}", 1.0)),
        *(("[[1, 2]]", 0.5), ("[]", 0.0), ("[[1, 2], [1, 2]]", 0.0), ("[[1, 2], [1.0, 2]]", 0.0)),
        *(("[[1, 2], [2, 1], [3, 0]]", 0.0), ("[[true, 2], [2, true]]", 0.0), ("[1, 2]", 0.0)),
        *(
            ("", -1.0),
            ("[1, 2], [2, 1]", -1.0),
            ("{}", -1.0),
            ("[" * 90_000, -1.0),
            ("[NaN]", -1.0),
        ),
        ("[" + "[1, 2], " * 20_000 + "[2, 1]]", -1.0),
    ],
)
def test_sets_of_solutions(text, score):
    started = time.process_time()
    assert SetOfSolutions(partial=0.5).score(PAIRS, rollout(text)) == score
    assert time.process_time() - started < 2.0


def test_a_half_of_the_solutions_earns_nothing_by_default():
    assert SetOfSolutions().score(PAIRS, rollout("[[1, 2]]")) == 0.0
    in_json = Task("k", "?", '[{"a": 1}, {"a": 2}]')
    assert SetOfSolutions().score(in_json, rollout('[{"a": 2}, {"a": 1}]')) == 1.0


def sums_to_three(task, solution):
    return isinstance(solution, list) and len(solution) == 2 and sum(solution) == 3


def test_a_checker_scores_the_share_of_the_solutions():
    task, reward = Task("k", "?", 4), CheckedSolutions(sums_to_three)
    cases = {
        "[[0, 3], [1, 2], [2, 1], [3, 0]]": 1.0,
        "[[0, 3], [1, 2]]": 0.5,
        "[[0, 3], [0, 3]]": 0.0,
        "[[0, 3], [1, 1]]": 0.0,
        "[[0, 3], [1, 2], [2, 1], [3, 0], [4, -1]]": 0.0,
        "[]": 0.0,
        "none": 0.0,
    }
    assert {text: reward.score(task, rollout(text)) for text in cases} == cases


@pytest.mark.parametrize("reward", [SetOfSolutions(), CheckedSolutions(sums_to_three)])
def test_malformed_sets_of_solutions_are_config_errors(reward):
    with pytest.raises(ConfigError, match=r"t, line 1: the reference answer 'x'. Allowed: "):
        reward.validate_tasks([Task("k", "?", "x", location="t, line 1")])


@pytest.mark.parametrize(
    "reward", [MultipleChoice(options="choices"), NumberWithin(0.1), SetOfSolutions(0.5)]
)
def test_they_return_from_their_records(reward):
    assert from_data(to_data(reward)) == reward
