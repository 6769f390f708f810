"""Prompt variants: a vote over variants of the prompt, notes of mistakes, bad input."""

import asyncio
import json

import pytest

from grupo.core.private_turns import record_private_turns
from grupo.core.types import Rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import PromptVariants, SimilarExamples
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script

PROMPTS = ("A({task})", "B({task})", "C({task})")


def answered(answer_of, strategy, question="Q"):
    """Rollout, prompts, labels and usage; the context up to the last bracket is the prompt."""

    def next_letter(context, key):
        prompt, bracket, begun = context.rpartition(")")
        return f"{answer_of(prompt + bracket)}."[len(begun)]

    actor = script(next_letter)
    with count_external_usage() as usage, record_private_turns() as turns:
        rollout = asyncio.run(strategy(actor, Rollout(), question))
    return rollout, [p for p, _ in actor.log], [x.label for x in turns], usage


def test_the_most_frequent_answer_of_all_forms_is_returned():
    rollout, prompts, labels, usage = answered(
        lambda prompt: "1" if prompt[0] == "A" else "2", PromptVariants(PROMPTS)
    )
    assert rollout.text == "2."
    assert prompts == ["A(Q)", "B(Q)", "C(Q)"]
    assert labels == ["variant 1 of 3", "variant 2 of 3, chosen", "variant 3 of 3"]
    assert usage["votes/tied"] == 0
    ((observation, response),) = rollout.turns
    assert (observation, response.observation, response.sampled) == ("Q", ("Q",), False)


def test_the_earliest_of_tied_forms_wins():
    rollout, _, _, usage = answered(lambda prompt: prompt[0], PromptVariants(PROMPTS))
    assert rollout.text == "A."
    assert usage["votes/tied"] == 1


def test_a_note_of_a_known_mistake_flips_the_answer(tmp_path):
    notes = tmp_path / "notes.jsonl"
    row = {"prompt": "how many legs has a spider", "answer": "8", "note": "no insect"}
    notes.write_text(json.dumps(row) + "\n")
    question = "legs of two spider twins"
    script_of = lambda prompt: "16" if "no insect" in prompt else "12"  # noqa: E731
    without, _, _, _ = answered(script_of, PromptVariants(PROMPTS), question)
    strategy = SimilarExamples(str(notes), 1, "Note: {note}\n", PromptVariants(PROMPTS))
    with_note, prompts, _, _ = answered(script_of, strategy, question)
    assert (without.text, with_note.text) == ("12.", "16.")
    assert prompts[0] == f"A(Note: no insect\n{question})"
    assert with_note.turns[0][0] == question


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ((), r"PromptVariants\.prompts: \(\)\. Allowed: at least one prompt"),
        (("{task}", "Think!"), r"PromptVariants\.prompts\[1\]: 'Think!' lacks \{task\}"),
        (("{task}{tsk}",), r"PromptVariants\.prompts\[0\]: \{tsk\} has no value here"),
    ],
)
def test_bad_input_is_named(prompts, message):
    with pytest.raises(ConfigError, match=message):
        PromptVariants(prompts)
