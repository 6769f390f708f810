"""Recalled thoughts: what a turn reads, what the rollout keeps, counts, bad input."""

import asyncio
import json
from dataclasses import dataclass

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.interfaces import run_rollout
from grupo.core.private_turns import record_private_turns
from grupo.core.types import RewardResult
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import RecalledThoughts, Vote
from grupo.storage import rollout_json
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, script

THINK = "T{task}|{answer}|{thoughts}>"
PROMPT = "P{thoughts}|{task}>"
SESSIONS = ("Bo has a hen", "it rains", "Al has a cat", "what has Bo")
OBSERVATIONS = (*SESSIONS, "Bo has a hat", "Bo lost her hen")


@dataclass
class Sessions:
    """Environment that gives one observation after the other."""

    observations: tuple[str, ...] = SESSIONS

    async def reply(self, task, rollout):
        turn = len(rollout.contexts)  # one context for each turn
        turn = turn if rollout.turns else 0
        return self.observations[turn] if turn < len(self.observations) else None

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.text.endswith("hen."))) for rollout in rollouts]


def remembers(context, key):
    """Keeps sentences with "has", and answers a question by the recalled thought about Bo."""
    prompt, bracket, begun = context.rpartition(">")
    if not bracket:  # nothing is recalled: the prompt is the observation
        prompt = next(text for text in OBSERVATIONS if context.startswith(text))
        begun = context[len(prompt) :]
    if prompt.startswith("T"):
        fact = prompt[1:].partition("|")[0]
        reply = f"{fact}." if "has a" in fact else "."
    elif "what has Bo" in prompt:
        reply = "hen." if "Bo has a hen" in prompt else "no."
    else:
        reply = "k."
    return reply[len(begun) % len(reply)]


def answered(strategy, observations=SESSIONS, next_letter=remembers):
    actor = script(next_letter)
    with count_external_usage() as usage, record_private_turns() as private:
        rollout = asyncio.run(
            run_rollout(TASK, Sessions(observations), actor, turn_strategy=strategy)
        )
    return rollout, [context for context, _ in actor.log], private, usage


def test_a_question_is_answered_by_a_thought_about_an_earlier_session():
    rollout, prompts, _, _ = answered(RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT))
    assert rollout.text == "k.k.k.hen."
    assert prompts == [
        "Bo has a hen",
        "TBo has a hen|k.|>",
        "it rains",  # nothing is recalled: no word in common
        "Tit rains|k.|>",
        "PBo has a hen.|Al has a cat>",
        "TAl has a cat|k.|Bo has a hen.>",
        "PBo has a hen.|what has Bo>",
    ]


def test_each_turn_is_a_sample_in_a_context_of_its_own():
    rollout, prompts, _, _ = answered(RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT))
    assert [observation for observation, _ in rollout.turns] == list(SESSIONS)
    responses = [response for _, response in rollout.turns]
    read = ["".join(response.observation) for response in responses]
    assert read == [prompt for prompt in prompts if prompt[0] != "T"]
    assert [response.resets_context for response in responses] == [False, True, True, True]
    assert all(response.sampled and not response.off_context for response in responses)
    assert len(rollout.contexts) == 4


def test_the_rollout_keeps_the_notes_of_which_the_memory_is_a_fold():
    strategy = RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT)
    rollout, _, _, _ = answered(strategy)
    assert rollout.notes == ("Bo has a hen.", "Al has a cat.")
    assert strategy.memory(rollout).recall("cat of Al", 1) == ["Al has a cat."]
    restored = rollout_json.from_data(json.loads(json.dumps(rollout_json.to_data(rollout))))
    assert restored.notes == rollout.notes
    other, _, _, _ = answered(strategy, ("it rains", "what has Bo"))
    assert other.text == "k.no."  # nothing of the first rollout is left


def test_thoughts_and_what_is_recalled_are_counted_and_can_be_read():
    strategy = RecalledThoughts(1, merge_at=0.5, think_prompt=THINK, turn_prompt=PROMPT)
    _, _, private, usage = answered(strategy, (*SESSIONS[:3], "Bo has a hat", "what has Bo"))
    assert usage == {
        "memory/thoughts": 3,  # about a hen, a cat and a hat
        "memory/merged": 2,  # Al has a cat: cosine 0.5 with Bo has a hen; Bo has a hat: also
        "memory/forgotten": 0,
        "memory/no_thought": 1,
        "memory/nothing_recalled": 1,
        "memory/recalled": 3,
    }
    labels = [turn.label for turn in private]
    assert labels.count("thoughts") == 4
    assert [turn.text for turn in private if turn.label == "recalled"][-1] == "Bo has a hat."


def test_a_thought_is_forgotten_where_the_policy_says_so():
    def forgets(context, key):
        prompt, _, begun = context.rpartition(">")
        if prompt.startswith("TBo lost"):
            return "forget: Bo has a hen."[len(begun)]
        return remembers(context, key)

    sessions = ("Bo has a hen", "Bo lost her hen", "what has Bo")
    strategy = RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT)
    rollout, _, _, usage = answered(strategy, sessions, forgets)
    assert rollout.text == "k.k.no."
    assert usage["memory/forgotten"] == 1


def test_a_turn_of_several_responses_is_thought_about_as_a_whole():
    async def twice(actor, rollout, observation):
        begun = rollout.append_turn(observation, await actor(rollout, observation))
        return begun.append_turn("", await actor(begun, ""))

    strategy = RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT, inner=twice)
    _, prompts, _, _ = answered(strategy, SESSIONS[:2])
    assert "TBo has a hen|k.k.|>" in prompts


def test_attempts_of_an_inner_vote_read_the_same_thoughts():
    strategy = RecalledThoughts(1, think_prompt=THINK, turn_prompt=PROMPT, inner=Vote(3))
    rollout, prompts, _, usage = answered(strategy)
    assert rollout.text == "k.k.k.hen."
    assert prompts.count("PBo has a hen.|what has Bo>") == 3
    assert usage["votes/all"] == 4
    assert rollout.notes == ("Bo has a hen.", "Al has a cat.")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cells": 3}, r"RecalledThoughts\.cells: 3\. Allowed: 1, or an even number"),
        ({"cells": 0}, r"RecalledThoughts\.cells: 0\. Allowed: 1 or more"),
        ({"probes": 9}, r"RecalledThoughts\.probes: 9\. Allowed: 1 to cells, 1"),
        ({"merge_at": 0.0}, r"RecalledThoughts\.merge_at: 0\.0\. Allowed: "),
        (
            {"think_prompt": "{task} {answer}"},
            r"RecalledThoughts\.think_prompt: .* lacks \{thoughts\}",
        ),
        (
            {"turn_prompt": "{thoughts} {tsk} {task}"},
            r"RecalledThoughts\.turn_prompt: \{tsk\} has no value here",
        ),
        ({"role": "thinker"}, r"needs a policy of the role 'thinker'"),
    ],
)
def test_bad_input_is_named_before_the_run(fields, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", RecalledThoughts(**fields), RECIPE)
