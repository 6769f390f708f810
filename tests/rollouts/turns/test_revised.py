"""Revised answers: private contexts, the stop that asks, and the number of answers."""

import asyncio
from dataclasses import replace

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.private_turns import record_private_turns
from grupo.core.types import Response, Rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import Revised
from grupo.rollouts.turns.private_context import task_text, with_task_text
from tests.helpers.scripted_actor import TASK, Once, script

ASK = "A{task}/{answer}"
STOP = "S{task}/{answer}"
GUIDE = "G{task}/{answer}"


def scripted(replies):
    """An actor whose replies are looked up by the whole prompt."""

    def next_letter(context, key):
        prompt = next(p for p in sorted(replies, key=len, reverse=True) if context.startswith(p))
        return replies[prompt][len(context) - len(prompt)]

    return script(next_letter)


REPLIES = {
    "Q": "1.",
    "AQ/1.": "2.",
    "AQ/2.": "3.",
    "AQ/3.": "4.",
    "AQ/4.": "5.",
    "SQ/1.": "no.",
    "SQ/2.": "no.",
    "SQ/3.": "Yes, it is.",
}


def answered(strategy, replies=REPLIES):
    actor = scripted(replies)
    rollout = asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy))
    return rollout, [context for context, _ in actor.log]


def test_a_stop_that_asks_needs_three_answers_where_a_fixed_number_needs_five():
    stopped, asked = answered(Revised(4, ASK, stop_prompt=STOP))
    fixed, contexts = answered(Revised(4, ASK))
    assert stopped.text == "3."
    assert [c for c in asked if c[0] != "S"] == ["Q", "AQ/1.", "AQ/2."]
    assert [c for c in asked if c[0] == "S"] == ["SQ/1.", "SQ/2.", "SQ/3."]
    assert fixed.text == "5."
    assert contexts == ["Q", "AQ/1.", "AQ/2.", "AQ/3.", "AQ/4."]


def test_a_stop_that_never_comes_ends_at_the_limit_and_is_counted():
    with count_external_usage() as usage:
        rollout, _ = answered(Revised(2, ASK, stop_prompt=STOP))
        answered(Revised(2, ASK))
    assert rollout.text == "3."
    assert usage == {"revisions/at_limit": 1.0}


def test_the_guide_is_part_of_the_next_prompt():
    replies = {"Q": "1.", "GQ/1.": "g.", "BQ/1./g.": "2."}
    rollout, contexts = answered(Revised(1, "B{task}/{answer}/{guide}", GUIDE), replies)
    assert contexts == ["Q", "GQ/1.", "BQ/1./g."]
    assert rollout.text == "2."


def test_the_revision_answers_the_task_and_was_sampled_elsewhere():
    rollout, _ = answered(Revised(1, ASK))
    ((observation, response),) = rollout.turns
    assert observation == "Q"
    assert response.observation == ("Q",)
    assert (response.off_context, response.sampled) == (True, True)


def test_an_answer_that_a_stop_selected_is_no_sample():
    rollout, _ = answered(Revised(4, ASK, stop_prompt=STOP))
    assert not rollout.last_response.sampled
    assert Revised(4, ASK, stop_prompt=STOP).provides.given
    assert not Revised(4, ASK).provides.given


def test_earlier_turns_stay():
    class TwoTurns(Once):
        async def reply(self, task, rollout):
            return ("Q", "R", None)[len(rollout.turns)]

    replies = {"Q": "1.", "AQ/1.": "2.", "Q2.R": "3.", "Q2.AR/3.": "4."}
    actor = scripted(replies)
    rollout = asyncio.run(run_rollout(TASK, TwoTurns(), actor, turn_strategy=Revised(1, ASK)))
    assert [(o, r.text) for o, r in rollout.turns] == [("Q", "2."), ("R", "4.")]


def test_private_turns_are_recorded_in_order():
    with record_private_turns() as turns:
        answered(Revised(4, ASK, stop_prompt=STOP))
    expected = [("answer 1", "1."), ("stop?", "no."), ("answer 2", "2."), ("stop?", "no.")]
    expected += [("answer 3", "3."), ("stop?", "Yes, it is.")]
    assert [tuple(turn) for turn in turns] == expected


def test_the_role_replies_to_the_forms_alone():
    roles = []

    class Roles:
        def __init__(self):
            self.generated_tokens = {}

        def fork(self, *label):
            return self

        async def __call__(self, rollout, observation):
            roles.append((observation[0], rollout.role))
            return Response((1,), (0.0,), tuple(observation), text="x")

    strategy = Revised(1, ASK, stop_prompt=STOP, role="critic")
    asyncio.run(strategy(Roles(), Rollout(), "Q"))
    assert roles == [("Q", ""), ("S", "critic"), ("A", "")]
    assert strategy.provides.roles == {"critic"}


SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("2 + 2", "new"),
        (
            [{"type": "image", "image": 1}, {"type": "text", "text": "2 + 2"}],
            [{"type": "image", "image": 1}, {"type": "text", "text": "new"}],
        ),
    ],
)
def test_a_form_replaces_the_users_last_message_and_keeps_media(content, expected):
    chat = (SYSTEM, {"role": "user", "content": content}, {"role": "assistant", "content": "It"})
    assert task_text(chat).endswith("2 + 2")
    assert with_task_text(chat, "new") == (SYSTEM, {"role": "user", "content": expected})


def test_a_rollout_of_another_role_keeps_it():
    rollout = asyncio.run(
        Revised(1, ASK)(scripted(REPLIES), replace(Rollout(), role="solver"), "Q")
    )
    assert rollout.role == "solver"
