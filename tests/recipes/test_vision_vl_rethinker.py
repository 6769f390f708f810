"""VL-Rethinker on pictures: the beginner's examples, and the arms."""

from random import Random

import pytest

from grupo.rollouts.samplers import ForcedRethinking
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "vision"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))  # the recipe imports a neighbour
        return load_module_file(FOLDER / "vl_rethinker.py")


def drawn(recipe, count=400, **fractions):
    rng = Random(0)
    examples = recipe.RethoughtExamples(**fractions)
    return [examples.draw(rng) for _ in range(count)]


def answers(text):
    return [part.split("</answer>")[0] for part in text.split("<answer>")[1:]]


def test_second_answers_follow_a_request_and_seldom_come_without(recipe):
    examples = drawn(recipe)
    requested = [e for e in examples if e.prompt.endswith(recipe.REQUEST)]
    assert len(requested) / 400 == pytest.approx(0.5, abs=0.08)
    assert all(len(answers(e.answer)) == 2 for e in requested)
    others = [e for e in examples if not e.prompt.endswith(recipe.REQUEST)]
    assert sum(len(answers(e.answer)) == 2 for e in others) <= 8


def test_fast_answers_to_hard_questions_are_guesses_and_slow_ones_count(recipe):
    hard = [e for e in drawn(recipe, requested=1.0) if e.prompt.startswith("How many")]
    agreeing = sum(len(set(answers(e.answer))) == 1 for e in hard)
    assert agreeing / len(hard) == pytest.approx(0.25, abs=0.08)
    for example in hard:
        thoughts = example.answer.split("<think>")[1].split("</think>")[0]
        assert thoughts.split()[-1] == answers(example.answer)[1]


def test_the_control_arm_forces_nothing(recipe):
    forced, free = recipe.rethinker().sampler, recipe.rethinker(0.0).sampler
    assert isinstance(forced, ForcedRethinking)
    assert (forced.chance, free.chance) == (0.65, 0.0)
    assert recipe.rethinker().replace(sampler=free) == recipe.rethinker(0.0)


def test_a_slow_answer_fits_into_the_token_limit(recipe):
    tokenizer = recipe.MODEL.tokenizer()
    longest = max(len(tokenizer(e.answer)["input_ids"]) for e in drawn(recipe, 100, requested=1.0))
    assert longest < recipe.MAX_NEW_TOKENS
