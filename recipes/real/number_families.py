"""Families of tasks about numbers: sums, differences, products, comparing, sorting, judging."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.evidence.survey import TaskFamily
from grupo.rewards import ExactMatch, NumberWithin
from grupo.rewards.text import LabelMatch
from grupo.util.importing import load_module_file

ANSWERS = load_module_file(Path(__file__).with_name("answers.py"))
NUMBER = NumberWithin(extract=ANSWERS.last_number)
NUMBER_WORDINGS = (
    "Compute {question}. Reply with the result and nothing else.",
    "What is {question}? Answer with the number only.",
    "{question} =",
)
ASKED_WORDINGS = (NUMBER_WORDINGS[1], NUMBER_WORDINGS[0], NUMBER_WORDINGS[2])
ERRORS = (-10, -2, -1, 1, 2, 10)  # of a sum that is shown as wrong


@component
class Sums:
    """Sums of numbers from `low` to `high`.

    Args:
        low: The smallest number.
        high: The largest number.
        terms: Numbers of a sum.
    """

    low: int
    high: int
    terms: int = 2

    def __call__(self, rng: Random) -> Iterator[Mapping[str, Any]]:
        while True:
            numbers = [rng.randint(self.low, self.high) for _ in range(self.terms)]
            yield {"question": " + ".join(map(str, numbers)), "answer": str(sum(numbers))}


def differences(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Differences of two numbers of two digits, which are not negative."""
    while True:
        small, large = sorted((rng.randint(10, 99), rng.randint(10, 99)))
        yield {"question": f"{large} - {small}", "answer": str(large - small)}


def products(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Products of two numbers from 2 to 12."""
    while True:
        a, b = rng.randint(2, 12), rng.randint(2, 12)
        yield {"question": f"{a} * {b}", "answer": str(a * b)}


def pairs(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Two numbers of two digits, of which the larger one is the answer."""
    while True:
        a, b = rng.sample(range(10, 100), 2)
        yield {"a": a, "b": b, "answer": str(max(a, b))}


def lists(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Four numbers below 100, and the same in ascending order."""
    while True:
        numbers = rng.sample(range(1, 100), 4)
        shown, ordered = (", ".join(map(str, x)) for x in (numbers, sorted(numbers)))
        yield {"numbers": shown, "answer": ordered}


def claimed_sums(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Sums of two numbers of two digits with a result, of which half are wrong."""
    while True:
        a, b = rng.randint(10, 99), rng.randint(10, 99)
        is_right = rng.random() < 0.5
        result = a + b + (0 if is_right else rng.choice(ERRORS))
        yield {"claim": f"{a} + {b} = {result}", "answer": "yes" if is_right else "no"}


FAMILIES = (
    TaskFamily("sums_1_digit", Sums(1, 9), NUMBER_WORDINGS, NUMBER, max_new_tokens=12),
    # the wording of this project's first runs with the model, although another one is better
    TaskFamily("sums_2_digits", Sums(10, 99), ASKED_WORDINGS, NUMBER),
    TaskFamily("sums_3_digits", Sums(100, 999), NUMBER_WORDINGS, NUMBER, max_new_tokens=20),
    TaskFamily("sums_3_terms", Sums(1, 20, 3), NUMBER_WORDINGS, NUMBER, max_new_tokens=20),
    TaskFamily("differences", differences, ASKED_WORDINGS, NUMBER),
    TaskFamily("products", products, ASKED_WORDINGS, NUMBER),
    TaskFamily(
        "larger_number",
        pairs,
        (
            "Which number is larger, {a} or {b}? Answer with the number only.",
            "Which is greater: {a} or {b}?",
        ),
        NUMBER,
        guess=0.5,
    ),
    TaskFamily(
        "sorted_numbers",
        lists,
        (
            "Write these numbers in ascending order: {numbers}",
            "Sort these numbers from smallest to largest: {numbers}. Answer with the list only.",
            "Sort the numbers.\n9, 2, 7, 4 -> 2, 4, 7, 9\n8, 15, 6, 3 -> 3, 6, 8, 15\n{numbers} ->",
        ),
        ExactMatch(ANSWERS.listed_items),
        max_new_tokens=20,
    ),
    TaskFamily(
        "claimed_sums",
        claimed_sums,
        (
            "Is this right? {claim} Answer yes or no.",
            "A student writes {claim}. Is the result correct? Answer yes or no.",
        ),
        LabelMatch(ANSWERS.yes_or_no),
        max_new_tokens=8,
        guess=0.5,
    ),
)
