"""Equality of mathematical answers: the forms that are equal, those that are not, and failures."""

import subprocess
import sys
from pathlib import Path

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.rewards import AnswerError, InsideTag, MathEqual, MathError, last_boxed
from grupo.rewards import math_equal as module
from grupo.rewards.math_equal import MAX_CHARS, math_equal
from grupo.util.errors import ConfigError
from tests.helpers.math_pairs import EQUAL, UNEQUAL

HANGING = "9^{9^{9^{9}}}"


def rollout(text):
    return Rollout((("?", Response((), (), text=text)),))


def test_forms_of_the_same_answer_are_equal():
    assert len(set(EQUAL)) == len(EQUAL) >= 110
    assert [pair for pair in EQUAL if not math_equal(*pair, 5.0)] == []


def test_other_answers_are_not_equal():
    assert len(set(UNEQUAL)) == len(UNEQUAL) >= 120
    assert [pair for pair in UNEQUAL if math_equal(*pair, 5.0)] == []


def test_every_reference_answer_equals_itself():
    references = {reference_answer for reference_answer, _ in EQUAL + UNEQUAL}
    assert [text for text in references if not math_equal(text, text, 5.0)] == []


def test_equal_answers_are_equal_inside_a_box_after_thoughts():
    def score(reference_answer, answer):
        text = rf"<think>\boxed{{77}}?</think> So it is $\boxed{{{answer}}}$, as required."
        return MathEqual().score(Task("k", "?", reference_answer), rollout(text))

    assert [pair for pair in EQUAL if score(*pair) != 1.0] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 1.0),
        (r"It is \boxed{4}.", 1.0),
        ("It is 4.", 0.0),
        ("It is $4$.", 0.0),
        (r"\boxed{4} or \boxed{5}", 0.0),
        (r"\boxed{4}, no: \boxed{", 0.0),
        (r"<think>\boxed{4}</think> done", 0.0),
    ],
)
def test_the_default_answer_is_the_last_box_or_the_whole_text(text, value):
    assert MathEqual().score(Task("k", "?", 4), rollout(text)) == value


def test_a_missing_answer_scores_zero():
    assert MathEqual(last_boxed).score(Task("k", "?", "4"), rollout("$4$")) == 0.0
    assert MathEqual(InsideTag("answer")).score(Task("k", "?", "4"), rollout("4")) == 0.0


@pytest.mark.slow
def test_an_answer_that_hangs_the_comparison_is_an_answer_error_and_the_next_one_works():
    with pytest.raises(AnswerError, match=r"the answer was killed after 0\.5 s"):
        MathEqual(time_limit=0.5).score(Task("k", "?", "2"), rollout(f"${HANGING}$"))
    assert math_equal("2", "$1 + 1$", 5.0)


@pytest.mark.slow
def test_a_reference_answer_that_hangs_the_comparison_is_a_math_error():
    with pytest.raises(MathError, match=r"with itself was killed after 0\.5 s"):
        math_equal(HANGING, "2", 0.5)


def answer_that_raises(process, error):
    """A comparison that fails for all but the reference answer compared with itself."""

    def compare(expected, answer, time_limit):
        if expected == answer:
            return True
        raise module._ComparisonFailure(error)

    return compare


@pytest.mark.parametrize(
    "error", ["raised MemoryError", "raised RecursionError", "raised KeyError"]
)
def test_an_answer_that_makes_the_comparison_raise_is_an_answer_error(error, monkeypatch):
    compare = answer_that_raises(None, error)
    monkeypatch.setattr(module, "_compare", compare)
    with pytest.raises(AnswerError, match=error):
        math_equal("2", "3", 5.0)
    assert math_equal("2", "2", 5.0)


def test_a_process_that_cannot_start_is_a_math_error(monkeypatch):
    monkeypatch.setattr(module, "_programs", module._programs.__wrapped__)
    monkeypatch.setattr(module, "PROGRAM", Path("no_such_program.py"))
    with pytest.raises(MathError, match=r"at its start no_such_program\.py: ended the process"):
        math_equal("2", "2", 5.0)


@pytest.mark.parametrize("reference_answer", ["", " ", "$$", "1" * (MAX_CHARS + 1)])
def test_a_reference_answer_without_an_expression_is_an_error(reference_answer):
    with pytest.raises(MathError, match=r"is no expression"):
        math_equal(reference_answer, "3", 5.0)


def test_a_text_that_is_too_long_is_no_answer():
    assert math_equal("4", "4" + " " * (MAX_CHARS - 1), 5.0)
    assert not math_equal("4", "4" + " " * MAX_CHARS, 5.0)


def test_a_time_limit_of_zero_is_a_config_error():
    with pytest.raises(ConfigError, match=r"time_limit"):
        MathEqual(time_limit=0.0)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('begins')\n"
        "from grupo.rewards.math_equal import math_equal\n"
        "print(math_equal('1/2', '$0.5$', 5.0))\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["begins", "True"]
