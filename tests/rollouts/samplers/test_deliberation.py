"""Deliberations of scripted agents: order, round limit, end, refiner, prompts and sources."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from grupo.core.types import Task
from grupo.rollouts.samplers import Deliberation, drop_repeats
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import Once, Script

TASK = Task("t", "Q", columns={"rules": "R", "belief": "B"})
TEXTS = {"discuss": "[{rules}|{thoughts}|{agent}>", "answer": "{{{rules}>", "plant": "({belief}>"}


class Writer(Script):
    """A scripted actor whose rollouts can be moved behind another prompt."""

    def with_prompt(self, rollout, prompt):
        (_, response), *rest = rollout.turns
        return replace(rollout, turns=((prompt, replace(response, off_context=True)), *rest))


def agents_saying(**words: str):
    """Agents a, b, c, ... each of which always says a letter; answers are y, planted ones n."""

    def next_letter(context: str, key: int) -> str:
        prompt, _, said = context.rpartition(">")
        if said.rpartition("</think")[2] or (said and "think" not in said):
            return "."
        if "[" in prompt:
            return words[prompt[-1]]
        return "n" if "(" in prompt else "y"

    return Writer(next_letter, [])


def deliberation(agents: str, **fields) -> Deliberation:
    return Deliberation(tuple(agents), stop="s", separator=",", **{**TEXTS, **fields})


def thoughts_of(sampler: Deliberation, actor: Any) -> list[str]:
    return asyncio.run(sampler.deliberate(TASK, Once(), actor))


def test_agents_add_a_thought_each_until_the_third_says_stop():
    actor = agents_saying(a="1", b="2", c="s")
    assert thoughts_of(deliberation("abc", quiet=1), actor) == ["1.", "2."]
    assert [context for context, _ in actor.log] == ["Q[R||a>", "Q[R|1.|b>", "Q[R|1.,2.|c>"]


def test_all_agents_must_be_silent_in_a_row_by_default():
    actor = agents_saying(a="1", b="s", c="s")
    # each agent repeats itself: a breaks the silence of b and c in every round
    assert thoughts_of(deliberation("abc", rounds=3), actor) == ["1.", "1.", "1."]
    silent = agents_saying(a="s", b="s", c="s")
    assert thoughts_of(deliberation("abc", rounds=3), silent) == []
    assert len(silent.log) == 3


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_number_of_rounds_is_limited(rounds):
    actor = agents_saying(a="1", b="2")
    assert len(thoughts_of(deliberation("ab", rounds=rounds), actor)) == 2 * rounds
    assert len(actor.log) == 2 * rounds


def test_the_refiner_drops_repeats():
    assert drop_repeats(TASK, ["No names.", "Refuse.", "no  NAMES.", "Refuse."]) == [
        "No names.",
        "Refuse.",
    ]


def group_of(sampler: Deliberation, actor: Any):
    return asyncio.run(sampler(TASK, Once(lambda text: "y" in text), actor))


def test_the_deliberated_answer_follows_the_refined_thoughts_behind_the_plain_prompt():
    actor = agents_saying(a="1", b="2")
    group = group_of(deliberation("ab", rounds=2), actor)
    deliberated, planted = group.rollouts
    assert deliberated.text == "<think>1.,2.</think>y."
    assert (deliberated.source, planted.source) == ("deliberated", "planted")
    assert [observation for observation, _ in deliberated.turns] == ["Q", ""]
    assert [response.in_loss for _, response in deliberated.turns] == [False, True]
    assert group.rewards == (1.0, 0.0)


def test_a_planted_belief_stands_in_the_prompt_of_the_rejected_answer_only():
    actor = agents_saying(a="s")
    planted = group_of(deliberation("a"), actor).rollouts[1]
    assert ("Q(B>", "n.") in actor.log
    assert planted.text == "n."
    assert planted.turns[0][0] == "Q"


def test_own_refiners_see_the_task():
    def only_rules(task, thoughts):
        return [thought for thought in thoughts if task.columns["rules"] in thought]

    group = group_of(deliberation("a", rounds=1, refine=only_rules), agents_saying(a="1"))
    assert group.rollouts[0].text == "<think></think>y."


def test_no_agents_are_refused():
    with pytest.raises(ConfigError, match=r"Deliberation.agents: \(\). Allowed: one instruction"):
        Deliberation(())


def test_intentions_are_the_first_thoughts_which_agents_read():
    actor = agents_saying(i="5", a="1", b="s")
    sampler = deliberation("ab", quiet=1, intents="[{rules}|i>")
    assert thoughts_of(sampler, actor) == ["5.", "1."]
    assert [context for context, _ in actor.log] == ["Q[R|i>", "Q[R|5.|a>", "Q[R|5.,1.|b>"]
