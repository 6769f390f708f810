"""Thinkers in lock step, with a scripted actor, and with a tiny model."""

import asyncio
from dataclasses import dataclass, field

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.private_turns import record_private_turns
from grupo.core.types import Response
from grupo.rollouts.turns import GroupThink
from grupo.rollouts.turns.choices import MostVoted
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import END, TASK, Once, Script


@dataclass(frozen=True)
class ThinkersScript(Script):
    """A script whose continuations are given texts, each of which ends with the end letter."""

    thoughts: tuple = ()
    requests: list = field(default_factory=list)

    async def decode(self, rollout, observation, decoding):
        self.requests.append(decoding)
        return [
            Response(
                tuple(text),
                (-1.0,) * len(text),
                tuple(observation) if text else (),
                text.removesuffix(END),
                "end" if text.endswith(END) else "length",
                off_context=True,
            )
            for text in self.thoughts
        ]


def actor_of(*thoughts):
    return ThinkersScript(lambda context, key: END, [], thoughts=thoughts)


def roll_out(strategy, actor):
    return asyncio.run(run_rollout(TASK, Once(), actor, turn_strategy=strategy))


def test_the_answer_is_what_all_thinkers_have_written():
    actor = actor_of("ox.", "hen", "owl.")
    rollout = roll_out(GroupThink(3, " {number}: "), actor)
    assert rollout.text == " 1: ox 2: hen 3: owl"
    assert actor.requests[0].starts == tuple(tuple(f" {i}: ") for i in (1, 2, 3))
    ((observation, response),) = rollout.turns
    assert (observation, response.observation) == ("Q", ("Q",))
    assert "".join(response.items) == " 1: ox 2: hen 3: owl."  # no end token in the middle
    assert response.logp[:6] == (0.0,) * 4 + (-1.0,) * 2  # of the start, and of the first thinker
    assert (response.finish_reason, response.sampled, response.in_loss) == ("end", False, True)


def test_a_choice_returns_the_text_of_one_thinker():
    by = MostVoted(lambda text: text[-1])
    with record_private_turns() as private:
        rollout = roll_out(GroupThink(3, "{number}", by), actor_of("a.", "b.", "b."))
    assert [(o, response.text) for o, response in rollout.turns] == [("Q", "2"), ("", "b")]
    assert [response.in_loss for _, response in rollout.turns] == [False, True]
    assert [turn.label for turn in private] == [
        "thinker 1 of 3",
        "thinker 2 of 3, chosen",
        "thinker 3 of 3",
    ]
    assert not any(response.sampled for _, response in rollout.turns)


def test_without_a_start_the_first_thinker_answers_the_observation():
    rollout = roll_out(GroupThink(2, ""), actor_of("a.", "b."))
    assert [(o, response.text) for o, response in rollout.turns] == [("Q", "ab")]
    # a thinker that ends at once adds nothing
    assert roll_out(GroupThink(2, ""), actor_of(".", "b.")).text == "b"


def test_a_context_without_room_has_an_empty_answer():
    rollout = roll_out(GroupThink(2), actor_of(""))
    ((observation, response),) = rollout.turns
    assert (observation, response.items) == ("Q", ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n": 0}, r"GroupThink.n: 0. Allowed: 1 to 10000"),
        ({"start": "{name}: "}, r"GroupThink.start: '{name}: '. Allowed: .* but {number}"),
    ],
)
def test_wrong_fields_are_rejected(fields, message):
    with pytest.raises(ConfigError, match=message):
        GroupThink(**fields)
