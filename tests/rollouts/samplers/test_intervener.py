"""A model as intervener: its prompt, what it replies, and replies that cannot be read."""

import asyncio

import pytest

from grupo.core.usage import count_external_usage
from grupo.rollouts.samplers import CorrectiveHints, GroupSampler
from grupo.rollouts.samplers.intervener import AskedIntervener
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

HINT = "|."
ASKED = AskedIntervener("{task}({answer})", separator="=", none="n")


def letters(reply):
    """Answers `aaxx.`, or `b.` behind the hint; replies to the intervener's prompt `Q(…)`."""

    def letter(context, key):
        if "(" in context:
            return reply[len(context.rpartition(")")[2])]
        written = context.rpartition(HINT)[2] if HINT in context else context.removeprefix("Q")
        return ("b." if HINT in context else "aaxx.")[len(written)]

    return letter


def corrected(reply):
    actor = script(letters(reply))
    sampler = CorrectiveHints(GroupSampler(1), find_flaw=ASKED, max_hint_share=1.0)
    with count_external_usage() as usage:
        group = asyncio.run(sampler(TASK, Once(lambda text: "b" in text), actor))
    return [rollout.text for rollout in group.rollouts[1:]], actor.log, usage


def test_the_model_reads_the_answer_and_its_hint_is_forced_in_place_of_the_part_it_quotes():
    texts, log, usage = corrected(f"xx={HINT}")
    assert texts == [f"aa{HINT}b."]
    assert "Q(aaxx.)" in [context for context, _ in log]
    assert usage == {}


@pytest.mark.parametrize(("reply", "unreadable"), [("none.", 0.0), ("yy=|.", 1.0), ("what.", 1.0)])
def test_replies_without_a_flaw_correct_nothing_and_unreadable_ones_are_counted(reply, unreadable):
    texts, _, usage = corrected(reply)
    assert texts == []
    assert usage.get("intervener/unreadable", 0.0) == unreadable


def test_the_role_of_the_model_is_provided_and_that_of_a_rule_is_not():
    asked = CorrectiveHints(GroupSampler(1), find_flaw=ASKED)
    ruled = CorrectiveHints(GroupSampler(1), find_flaw=lambda task, text: None)
    assert set(asked.provides.roles) == {"intervener"}
    assert not ruled.provides.roles


def test_a_form_without_the_answer_is_refused():
    with pytest.raises(ConfigError, match="answer"):
        AskedIntervener("{task}")
