"""Lent thoughts: tokens saved, the path of a task that is too hard, roles, bad input."""

import asyncio
from dataclasses import dataclass, field

import pytest

from grupo.config.strategies import check_strategy
from grupo.core.private_turns import record_private_turns
from grupo.core.types import Response, Rollout
from grupo.core.usage import count_external_usage
from grupo.rollouts.turns import LentThought
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import script

OWN_THOUGHT = "<" + "t" * 78 + ">"  # with the answer, 100 tokens
ANSWER = "it is forty-four 44."


@dataclass
class Lender:
    """Actor of two roles: the lender replies `thought`; the policy thinks unless it is lent one."""

    thought: str
    tokens: dict = field(default_factory=lambda: {"": 0, "lender": 0})

    def fork(self, *label):
        return self

    def with_stop(self, *stop_strings, max_new_tokens=0):
        return self

    async def __call__(self, rollout, observation):
        text = ANSWER if rollout.turns else OWN_THOUGHT + ANSWER
        if rollout.role == "lender":
            text = self.thought
        self.tokens[rollout.role] += len(text)
        return Response(tuple(text), (0.0,) * len(text), tuple(observation), text)

    async def prefill_forced(self, rollout, observation, text):
        return Response(tuple(text), (), tuple(observation), text, sampled=False, in_loss=False)

    def truncate(self, rollout, num_items):
        return rollout


def answered(thought, strategy=LentThought("lender", think_start="<", think_end=">")):
    actor = Lender(thought)
    with count_external_usage() as usage, record_private_turns() as turns:
        rollout = asyncio.run(strategy(actor, Rollout(), "6 + 38"))
    return rollout, actor.tokens, usage, turns


def test_a_lent_thought_saves_the_policys_own_and_keeps_the_answer():
    alone = asyncio.run(Lender("")(Rollout(), "6 + 38"))
    rollout, tokens, usage, turns = answered("40 + 4")
    assert (len(alone.items), tokens) == (100, {"": 20, "lender": 6})
    assert rollout.text == "<40 + 4>" + ANSWER
    assert [response.in_loss for _, response in rollout.turns] == [False, True]
    assert usage == {"lent/thoughts": 1}
    assert [tuple(turn) for turn in turns] == [("lent thought", "40 + 4")]


@pytest.mark.parametrize("reply", ["<STOP>", "Sorry, <STOP>.", "", " > "])
def test_a_task_that_is_too_hard_takes_the_usual_path(reply):
    rollout, tokens, usage, _ = answered(reply)
    assert rollout.text == OWN_THOUGHT + ANSWER
    assert tokens[""] == 100
    assert usage["lent/declined"] == 1
    assert "lent/thoughts" not in usage


def test_what_the_lender_writes_besides_its_thought_is_cut():
    assert answered("<40 + 4> so it is 45")[0].text == "<40 + 4>" + ANSWER


def test_the_policy_lends_itself_a_thought_of_limited_length():
    contexts = {"6?": "abcdef.", "6<abc>": "z."}

    def next_letter(context, key):
        start = next(x for x in contexts if context.startswith(x))
        return contexts[start][len(context) - len(start)]

    strategy = LentThought(
        thought_prompt="{task}?", thought_tokens=3, think_start="<", think_end=">"
    )
    rollout = asyncio.run(strategy(script(next_letter), Rollout(), "6"))
    assert rollout.text == "<abc>z."
    assert not strategy.provides.given


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"role": "lender"}, "needs a policy of the role 'lender'"),
        ({"thought_prompt": "Think!"}, r"LentThought\.thought_prompt: 'Think!' lacks \{task\}"),
        ({"thought_tokens": 0}, r"LentThought\.thought_tokens: 0\. Allowed: 1 or more"),
        ({"think_end": " "}, r"LentThought\.think_end: ' '\. Allowed: "),
    ],
)
def test_bad_input_is_named_before_the_run(fields, message):
    with pytest.raises(ConfigError, match=message):
        check_strategy("strategy", LentThought(**fields), RECIPE)
