"""Beam search over steps, with scripted steps and values."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from grupo.core.interfaces import run_rollout
from grupo.rollouts.turns import StepBeam
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng
from tests.helpers.scripted_actor import END, TASK, Once, Script


@dataclass(frozen=True)
class ValuedScript(Script):
    """A script with values of the texts so far."""

    values: Callable[[str], float] = len

    async def predict_head(self, rollout, head):
        assert head == "value"
        return self.values(rollout.text)


def roll_out(strategy, next_letter, values, key=0):
    actor = ValuedScript(next_letter, [], key, values=values)
    return asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy)), actor.log


def first_letter_then_end(context, key):
    """a or b at random, a newline, then y (success) or n (failure), and the end."""
    text = context[1:]
    rng = make_rng(key, len(text))
    if not text:
        return rng.choice("ab")
    if len(text) == 1:
        return "\n"
    if len(text) == 2:
        return "y" if rng.random() < {"a": 0.8, "b": 0.2}[text[0]] else "n"
    return END


def chance(text):
    return {"a": 0.8, "b": 0.2}.get(text[:1], 0.5)


def test_beam_of_one_finds_what_sampling_finds_half_the_time():
    # after a, 0.8 succeed; after b, 0.2; a first step of four samples lacks a once in 16
    n = 400
    found = sum(
        "y"
        in roll_out(StepBeam(width=1, samples_per_round=4), first_letter_then_end, chance, key)[
            0
        ].text
        for key in range(n)
    )
    plain = sum(
        "y" in asyncio.run(run_rollout(TASK, Once(), Script(first_letter_then_end, [], key))).text
        for key in range(n)
    )
    assert plain / n == pytest.approx(0.5, abs=4 * (0.25 / n) ** 0.5)
    assert found / n >= 0.8 * 15 / 16 + 0.2 / 16 - 4 * (0.25 / n) ** 0.5


def test_beams_of_highest_value_are_kept_and_finished_ones_stay():
    def letters(context, key):
        text = context[1:]
        if not text:
            return "abc"[make_rng(key, 0).randrange(3)]
        if text == "c":
            return END
        return "\n" if text[-1] != "\n" else ("x" if text.count("x") < 1 else END)

    def values(text):
        return {"c": 0.9, "a": 0.5, "b": 0.1}[text[0]] - 0.01 * len(text)

    rollout, log = roll_out(StepBeam(width=2, samples_per_round=12), letters, values)
    assert rollout.text == "c."
    begins = {context for context, _ in log}
    assert "Qa\n" in begins
    assert "Qb\n" not in begins  # two beams: c, which is finished, and a


def test_finished_answers_are_valued_before_their_last_token():
    seen = []

    def values(text):
        seen.append(text)
        return 0.0

    roll_out(StepBeam(width=1, samples_per_round=1), first_letter_then_end, values)
    assert [len(text) for text in seen] == [2, 3]
    assert not any(END in text for text in seen)


def test_alike_steps_are_one_beam():
    valued = []

    def values(text):
        valued.append(text)
        return 0.0

    rollout, _ = roll_out(
        StepBeam(width=2, samples_per_round=8), lambda c, k: "x\n."[len(c[1:])], values
    )
    assert rollout.text == "x\n."
    assert valued == ["x\n", "x\n"]  # eight equal steps, valued once in each of two rounds


def test_search_that_never_finishes_stops_at_max_steps():
    def forever(context, key):
        return "\n" if context[-1] == "x" else "x"

    rollout, log = roll_out(StepBeam(width=1, samples_per_round=2, max_steps=3), forever, len)
    assert rollout.text == "x\n" * 3
    assert rollout.last_response.finish_reason == "stop"
    assert len(log) == 6


def test_finished_beams_come_before_higher_unfinished_ones():
    def letters(context, key):
        text = context[1:]
        if not text:
            return "ab"[make_rng(key, 0).randrange(2)]
        return END if text == "a" else ("\n" if text[-1] == "b" else "b")

    rollout, _ = roll_out(
        StepBeam(width=4, samples_per_round=8, max_steps=2), letters, lambda text: text.count("b")
    )
    assert rollout.text == "a."


def test_response_is_one_turn_and_not_sampled():
    rollout, _ = roll_out(StepBeam(width=1, samples_per_round=2), first_letter_then_end, chance)
    ((observation, response),) = rollout.turns
    assert (observation, response.observation, len(response.items)) == ("Q", ("Q",), 4)
    assert (response.sampled, response.finish_reason) == (False, "end")
    assert len(response.logp) == 4


def test_wrong_fields_are_rejected():
    with pytest.raises(
        ConfigError, match=r"StepBeam.samples_per_round: 3. Allowed: 4, the width, or more"
    ):
        StepBeam(width=4, samples_per_round=3)
    with pytest.raises(ConfigError, match=r"StepBeam.step_end: ''"):
        StepBeam(step_end="")
