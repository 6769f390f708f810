"""Shuffled options: votes for texts, ties, answers in the prompt's own letters, bad input."""

import asyncio
import re
from collections import Counter

import pytest

from grupo.core.private_turns import record_private_turns
from grupo.core.types import Rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import ShuffledOptions
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script

CITIES = ("Lima", "Cusco", "Quito", "Sucre")
PROMPT = "Capital of Peru?\n" + "\n".join(f"{x}) {c}" for x, c in zip("ABCD", CITIES, strict=True))


def answered(answer_of, strategy=ShuffledOptions(4), prompt=PROMPT):
    """The rollout, its prompts, private turns and usage, if `answer_of(prompt)` answers."""

    def next_letter(context, key):
        question = context[: len(prompt)]
        return f"{answer_of(question)}."[len(context) - len(question)]

    actor = script(next_letter)
    with count_external_usage() as usage, record_private_turns() as turns:
        rollout = asyncio.run(strategy(actor, Rollout(), prompt))
    return rollout, [context for context, _ in actor.log], turns, usage


def letter_of(city):
    return lambda prompt: re.search(rf"([A-D])\) {city}", prompt)[1]


def votes(turns):
    return Counter(turn.label.rpartition(" ")[2] for turn in turns)


def test_a_liking_for_a_position_cancels_and_knowledge_does_not():
    _, _, always_a, usage = answered(lambda prompt: "A")
    assert votes(always_a) == dict.fromkeys(CITIES, 1)
    assert usage == {"votes/all": 1, "votes/tied": 1, "votes/empty": 0}
    rollout, _, knower, usage = answered(letter_of("Quito"))
    assert votes(knower) == {"Quito": 4}
    assert usage["votes/tied"] == 0
    assert rollout.text == "C"


def test_each_option_stands_once_in_each_position():
    _, prompts, _, _ = answered(lambda prompt: "A")
    orders = [re.findall(r"\) (\w+)", prompt) for prompt in prompts]
    assert [sorted(position) for position in zip(*orders, strict=True)] == [sorted(CITIES)] * 4


def test_of_tied_options_the_one_named_first_is_the_answer():
    rollout, prompts, _, _ = answered(lambda prompt: "A")
    first = re.search(r"A\) (\w+)", prompts[0])[1]
    assert rollout.text == "ABCD"[CITIES.index(first)]


def test_the_answer_belongs_to_the_prompt_as_it_is_and_is_no_sample():
    strategy = ShuffledOptions(2, answer_form="{letter}: {option}")
    rollout, _, _, _ = answered(letter_of("Cusco"), strategy)
    ((observation, response),) = rollout.turns
    assert (observation, response.observation) == (PROMPT, tuple(PROMPT))
    assert response.text == "B: Cusco"
    assert not response.sampled
    assert strategy.provides.given


def test_attempts_that_name_no_option_do_not_vote():
    def sometimes(prompt):
        return letter_of("Sucre")(prompt) if "A) Lima" in prompt else "who knows"

    rollout, _, turns, usage = answered(sometimes)
    assert votes(turns) == {"none": 3, "Sucre": 1}
    assert rollout.text == "D"
    assert usage["votes/empty"] == 0


def test_without_any_vote_the_first_attempt_is_returned_and_counted():
    rollout, _, _, usage = answered(lambda prompt: "who knows")
    assert rollout.text == "who knows."
    assert rollout.turns[0][0] == PROMPT
    assert not rollout.last_response.sampled
    assert usage["votes/empty"] == 1


def test_a_prompt_without_options_is_answered_once_and_counted():
    rollout, prompts, _, usage = answered(lambda prompt: "x", prompt="Capital of Peru?")
    assert (rollout.text, len(prompts)) == ("x.", 1)
    assert usage == {"options/missing": 1}


def test_a_chat_keeps_its_other_messages():
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT})
    prompts = []

    async def record(actor, rollout, observation):
        prompts.append(observation)
        return rollout.append_turn(observation, await actor(rollout, ""))

    actor = script(lambda context, key: ".")
    asyncio.run(ShuffledOptions(1, inner=record)(actor, Rollout(), chat))
    ((system, user),) = prompts
    assert system == chat[0]
    assert sorted(user["content"]) == sorted(PROMPT)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n": 0}, r"ShuffledOptions\.n: 0\. Allowed: 1 to 10000"),
        (
            {"answer_form": "A"},
            r"ShuffledOptions\.answer_form: 'A'\. Allowed: a text with \{letter\}",
        ),
        ({"answer_form": "{leter}"}, r"ShuffledOptions\.answer_form: '\{leter\}'"),
    ],
)
def test_bad_input_is_named(fields, message):
    with pytest.raises(ConfigError, match=message):
        ShuffledOptions(**fields)
