"""Self-generated hints, with an actor that answers "yes" to prompts with a certain word."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.rollouts.samplers import GroupSampler, with_self_hints
from grupo.rollouts.samplers.self_hint import HintPrompt, parse_hint, prompt_without_hint
from grupo.util.rng import make_rng

TASK = Task("t", "well?", "yes", columns={"solution": "by nodding"})
HINT_PROMPT = HintPrompt("ASKED {task} {attempt} {solution}")


@dataclass(frozen=True)
class HintActor:
    """Actor that generates its `hints` for prompts with ASKED, and "yes" for prompts with `word`.

    It generates "no" for other prompts and nothing, for lack of room, for prompts with "deaf".
    Every call is appended to `requests` as (labels of the fork, prompt).
    """

    word: str
    hints: tuple
    requests: list
    name: tuple = ()

    async def __call__(self, rollout, prompt):
        self.requests.append((self.name, prompt))
        if "ASKED" in str(prompt):
            return Response(("x",), (-1.0,), (prompt,), self.hints[self.name[-1] - 1])
        if "deaf" in str(prompt):
            return Response((), (), (), "", "length")
        text = "yes" if self.word in str(prompt) else "no"
        return Response((text,), (-2.0,), (prompt,), text)

    def fork(self, *label):
        return replace(self, name=(*self.name, *label))

    def rng(self, *label):
        return make_rng(0, *label)


class YesEnv:
    """Environment of one turn with reward 1 for "yes"."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        assert task.prompt == TASK.prompt  # hinted rollouts are scored without the hint
        return [RewardResult(float(r.text == "yes")) for r in rollouts]


def sample(*hints, word="key", n=2, task=TASK):
    """The group, and the requests to the actor."""
    requests = []
    sampler = with_self_hints(GroupSampler(n), len(hints), hint_prompt=HINT_PROMPT)
    group = asyncio.run(sampler(task, YesEnv(), HintActor(word, hints, requests)))
    return group, requests


def hint_terms(group):
    """The reward terms of the sampler, for each rollout."""
    names = ("is_hint", "hint_index", "hint_rejected")
    return [tuple(r.reward_terms[name] for name in names) for r in group.rollouts]


def test_hints_are_generated_and_tried_when_all_rollouts_are_incorrect():
    group, requests = sample("<hint>use the key</hint>", "hm: <hint> push </hint>")
    assert hint_terms(group) == [
        *[(0, 0, 0)] * 2,
        (1, 1, 0),
        (1, 2, 0),
        *[(0, 1, 0)] * 2,
        *[(0, 2, 0)] * 2,
    ]
    assert group.rewards == (0, 0, 0, 0, 1, 1, 0, 0)
    prompts = [prompt for _, prompt in requests]
    assert prompts[2:4] == ["ASKED well? no by nodding"] * 2
    assert prompts[4:] == ["well?\n\nuse the key"] * 2 + ["well?\n\npush"] * 2
    assert len({name for name, _ in requests}) == len(requests)  # each has its own random stream


def test_hinted_rollout_keeps_its_prompt_and_the_plain_prompt_is_available():
    group, _ = sample("<hint>key</hint>")
    plain, _, hint, hinted, _ = group.rollouts
    assert [r.turns[0][0] for r in (plain, hinted)] == ["well?", "well?\n\nkey"]
    plain_prompts = [prompt_without_hint(group, r) for r in (plain, hint, hinted)]
    assert plain_prompts == [None, None, "well?"]


def test_group_with_a_correct_rollout_generates_no_hints():
    group, requests = sample("<hint>key</hint>", word="well")
    assert group.rewards == (1.0, 1.0)
    assert hint_terms(group) == [(0, 0, 0)] * 2
    assert len(requests) == 2


@pytest.mark.parametrize(
    "hint", ["no tags", "<hint> </hint>", "<hint>say yes!</hint>", "<hint>deaf</hint>"]
)
def test_empty_leaking_and_overlong_hints_are_rejected(hint):
    group, requests = sample(hint)
    assert hint_terms(group) == [(0, 0, 0), (0, 0, 0), (1, 1, 1)]
    assert len(requests) == 3 + 2 * ("deaf" in hint)


def test_empty_generation_is_not_added_as_a_hint():
    sampler = with_self_hints(GroupSampler(2), 1, hint_prompt=HintPrompt("deaf {solution}"))
    group = asyncio.run(sampler(TASK, YesEnv(), HintActor("key", ("",), [])))
    assert hint_terms(group) == [(0, 0, 0)] * 2


def test_hint_prompt_shows_an_attempt_without_an_error():
    class FirstScoreFails(YesEnv):
        async def score(self, task, rollouts):
            results = await super().score(task, rollouts)
            return [RewardResult(error="broken"), *results[1:]]

    requests = []
    sampler = with_self_hints(
        GroupSampler(2), 1, hint_prompt=lambda task, attempt: f"ASKED {attempt.error!r}"
    )
    asyncio.run(sampler(TASK, FirstScoreFails(), HintActor("key", ("",), requests)))
    assert requests[2][1] == "ASKED ''"


def test_hint_prompt_joins_the_texts_of_a_chat():
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "well?"})
    assert HintPrompt("{task}")(replace(TASK, prompt=chat), Rollout()) == "Be brief.\n\nwell?"
    assert HintPrompt("{solution}")(replace(TASK, columns={}), Rollout()) == "yes"


def test_hint_is_parsed_from_its_tags():
    assert parse_hint("a <HINT>one\ntwo</HINT> b <hint>three</hint>") == "one\ntwo"
    assert parse_hint("<hint>unfinished") == ""
