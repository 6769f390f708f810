"""The toy model of digit sums: mistakes in its demonstrations, and its accuracy."""

import pytest

from grupo.evidence.claims.hard_sums import ENV
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.models.causal_lm import CausalLM
from grupo.tasks import DigitSums
from grupo.tasks.digit_sums import first_additions
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import SolutionsWithMistakes, ToyDigitSumsLM


def test_without_mistakes_it_is_the_worked_solution():
    task = DigitSums(size=1).load()[0]
    assert SolutionsWithMistakes(mistake_probability=0.0)(task) == [task.columns["solution"]]


def test_mistakes_have_the_given_probability_and_the_rest_follows():
    tasks = DigitSums(3, 3, size=1000).load()
    right = 0
    for task in tasks:
        (text,) = SolutionsWithMistakes(0, mistake_probability=0.5)(task)
        start, first, *additions, word, answer = text.split()
        assert (start, word) == (":", "is")
        assert answer == additions[-1][-1]
        right += additions[0][-1] != first[1]
    assert 0.4 < right / 1000 < 0.5  # a zero changes no total: 0.45


def test_additions_of_the_prompt_are_copied_without_mistakes():
    for task in DigitSums(size=50, hint_share=1.0).load():
        (text,) = SolutionsWithMistakes(0, mistake_probability=1.0)(task)
        assert text.startswith(str(task.prompt).partition("? ")[2])


def test_the_first_additions_are_right():
    for task in DigitSums(size=50).load():
        (text,) = SolutionsWithMistakes(careful_additions=2, mistake_probability=1.0)(task)
        assert text.startswith(first_additions(task.columns["solution"], 2))


@pytest.mark.slow
def test_the_beginner_solves_10_to_50_percent():
    policy = CausalLM(str(ensure_trained(ToyDigitSumsLM())), max_new_tokens=64).build()
    accuracy = mean_terms(policy, ENV, DigitSums(size=100, seed=9).load())["correct"]
    assert 0.1 < accuracy < 0.5
