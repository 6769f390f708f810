"""Trimmed thinking: where a chain is cut, by scripted answers."""

import asyncio

import pytest

from grupo.methods.simpo import simpo
from grupo.rollouts.samplers import TrimmedThinking
from grupo.util.errors import ConfigError
from tests.helpers.preference_batches import loss_and_gradient, pair_batch
from tests.helpers.scripted_actor import TASK, Once, script, texts

THOUGHT = "ab;cd;ef|"  # three segments
SAMPLER = TrimmedThinking((";",), attempts=4, instruction="!", think_end="|")


def answering(*success: bool):
    """Letters of THOUGHT, then an answer: y after so many segments that suffice, else n."""

    def next_letter(context: str, key: int) -> str:
        thought, ended, answer = context[1:].partition("|")
        if not ended:
            return THOUGHT[len(thought)]
        segments = thought.count(";")
        return "." if answer else ("y" if success[segments] else "n")

    return script(next_letter)


def group_of(*success: bool, sampler=SAMPLER):
    return asyncio.run(sampler(TASK, Once(lambda text: "y" in text), answering(*success)))


def test_a_chain_that_is_right_from_the_first_segment_is_cut_after_it():
    group = group_of(True, True, True)
    assert texts(group) == ["ab!|y.", "ab;cd;ef|y."]
    assert group.rewards == (1.0, 0.0)


def test_a_chain_that_needs_all_segments_has_no_pair():
    group = group_of(False, False, True)
    assert texts(group) == ["ab;cd;ef|y."]


def test_the_shortest_sufficient_beginning_is_kept():
    assert texts(group_of(False, True, True))[0] == "ab;cd!|y."


def test_a_wrong_chain_is_mended_by_an_earlier_answer():
    assert texts(group_of(True, False, False)) == ["ab!|y.", "ab;cd;ef|n."]


def test_later_cuts_are_not_tried_once_one_suffices():
    actor = answering(True, True, True)
    asyncio.run(SAMPLER(TASK, Once(lambda text: "y" in text), actor))
    assert [text for _, text in actor.log] == [THOUGHT, "y.", *["y."] * 4]


def test_forced_text_is_masked():
    chosen = group_of(True, True, True).rollouts[0]
    assert [(a.text, a.in_loss) for _, a in chosen.turns] == [
        ("ab", True),
        ("!|", False),
        ("y.", True),
    ]


def test_simpo_of_the_catalogue():
    # mean log-probabilities -0.5 and -1: 2 (0.5) - 0.5 = 0.5, -log sigmoid(0.5) = 0.4741
    batch = pair_batch([0.0, 0.0], length=(2, 4))
    loss, _ = loss_and_gradient(simpo(2.0, 0.25), batch, change=[1.0, 0.0])
    assert loss == pytest.approx(0.4741, abs=5e-5)


def test_no_cues_are_rejected():
    with pytest.raises(ConfigError, match=r"cues.*one text or more"):
        TrimmedThinking(())
