"""The table of AdaptThink: which answers count as direct, and what each arm is given."""

import pytest

from grupo.core.types import Response, Rollout
from grupo.tasks.digit_sums import ANSWER
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

SUMS = load_module_file(ROOT / "recipes" / "guidance" / "adaptthink_sums.py")
EASY, HARD = (SUMS.DigitSums(*digits, size=1).load()[0] for digits in SUMS.KINDS.values())


def answer(text: str) -> Rollout:
    return Rollout((("?", Response((), (), text=text)),))


def test_half_of_the_sums_are_easy():
    counts = [len(task.columns["terms"]) for task in SUMS.sums(1000, seed=0).load()]
    assert set(counts) == {2, 7, 8}
    assert 0.45 < counts.count(2) / 1000 < 0.55


def test_the_reward_of_the_known_kind_is_for_thinking_on_hard_sums_only():
    digit = EASY.reference_answer
    direct, thinking = answer(f"= {EASY.prompt}is {digit}"), answer(f": = is {digit}")
    rewards = [SUMS.fits_kind(task, x) for task in (EASY, HARD) for x in (direct, thinking)]
    assert rewards == [1.0, 0.0, 0.0, 1.0]
    terms = {term.name: term.reward(EASY, [direct, thinking]) for term in SUMS.ENV.rewards}
    assert terms == {"correct": [1.0, 1.0], "direct": [1.0, 0.0]}
    assert [term.weight for term in SUMS.KNOWN_KIND.rewards] == [1.0, 0.0, 1.0]


def test_hard_answers_without_thinking_are_long_enough_for_the_clip():
    _, direct = SUMS.MODEL.solve(HARD)
    tokens = len(direct) - len(ANSWER) + 1  # one for each other character and `is `
    assert 0.5 * 0.8**tokens < 0.01


@pytest.mark.slow
def test_the_upper_bound_learns_when_to_think():
    metrics = SUMS.run("known kind", seed=100)
    assert metrics["easy/direct"] > 0.9
    assert metrics["hard/direct"] < 0.1
