"""A policy that says "yes" where it read the right word, and hints at one when it is asked to."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.rng import make_rng
from grupo.core.types import Action, RewardResult, Rollout, Task
from grupo.rollouts.samplers import GroupSampler, WithSelfHint
from grupo.rollouts.samplers.self_hint import HintPrompt, parse_hint, prompt_without_hint

TASK = Task("t", "well?", "yes", columns={"solution": "by nodding"})
ASKING = HintPrompt("ASKED {task} {attempt} {solution}")


@dataclass(frozen=True)
class Coach:
    """Says its `num_hints` one after another where it is ASKED, else "yes" after reading `status`."""

    word: str
    hints: tuple
    asked: list
    name: tuple = ()

    async def __call__(self, rollout, seen):
        self.asked.append((self.name, seen))
        if "ASKED" in str(seen):
            return Action(("x",), (-1.0,), (seen,), self.hints[self.name[-1] - 1])
        if "deaf" in str(seen):
            return Action((), (), (), "", "length")
        text = "yes" if self.word in str(seen) else "no"
        return Action((text,), (-2.0,), (seen,), text)

    def fork(self, *label):
        return replace(self, name=(*self.name, *label))

    def rng(self, *label):
        return make_rng(0, *label)


class World:
    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        assert task.prompt == TASK.prompt  # whatever was asked, the task is judged
        return [RewardResult(float(r.text == "yes")) for r in rollouts]


def sample(*hints, word="key", n=2, task=TASK):
    asked = []
    sampler = WithSelfHint(GroupSampler(n), len(hints), hint_prompt=ASKING)
    group = asyncio.run(sampler(task, World(), Coach(word, hints, asked)))
    return group, asked


def kinds(group):
    return [(r.reward_terms["is_hint"], r.reward_terms["hint_index"], r.reward_terms["hint_rejected"]) for r in group.rollouts]


def test_where_all_are_wrong_it_is_asked_for_hints_and_tries_each():
    group, asked = sample("<hint>use the key</hint>", "hm: <hint> push </hint>")
    assert kinds(group) == [
        *[(0, 0, 0)] * 2,
        (1, 1, 0),
        (1, 2, 0),
        *[(0, 1, 0)] * 2,
        *[(0, 2, 0)] * 2,
    ]
    assert group.rewards == (0, 0, 0, 0, 1, 1, 0, 0)
    shown = [seen for _, seen in asked]
    assert shown[2:4] == ["ASKED well? no by nodding"] * 2
    assert shown[4:] == ["well?\n\nuse the key"] * 2 + ["well?\n\npush"] * 2
    assert len({name for name, _ in asked}) == len(asked)  # each has a stream of its own


def test_an_attempt_keeps_its_hint_and_can_be_read_without():
    group, _ = sample("<hint>key</hint>")
    plain, _, hint, seen, _ = group.rollouts
    assert [r.turns[0][0] for r in (plain, seen)] == ["well?", "well?\n\nkey"]
    assert [prompt_without_hint(group, r) for r in (plain, hint, seen)] == [None, None, "well?"]


def test_who_is_right_alone_is_not_asked_for_hints():
    group, asked = sample("<hint>key</hint>", word="well")
    assert group.rewards == (1.0, 1.0)
    assert kinds(group) == [(0, 0, 0)] * 2
    assert len(asked) == 2


@pytest.mark.parametrize(
    "hint", ["no tags", "<hint> </hint>", "<hint>say yes!</hint>", "<hint>deaf</hint>"]
)
def test_a_hint_that_is_none_tells_the_answer_or_leaves_no_room_is_refused(hint):
    group, asked = sample(hint)
    assert kinds(group) == [(0, 0, 0), (0, 0, 0), (1, 1, 1)]
    assert len(asked) == 3 + 2 * ("deaf" in hint)


def test_a_hint_that_nobody_had_room_to_give_is_left_out():
    sampler = WithSelfHint(GroupSampler(2), 1, hint_prompt=HintPrompt("deaf {solution}"))
    group = asyncio.run(sampler(TASK, World(), Coach("key", ("",), [])))
    assert kinds(group) == [(0, 0, 0)] * 2


def test_a_wrong_attempt_that_could_be_judged_is_shown():
    class Picky(World):
        async def score(self, task, rollouts):
            verdicts = await super().score(task, rollouts)
            return [RewardResult(error="broken"), *verdicts[1:]]

    asked = []
    sampler = WithSelfHint(
        GroupSampler(2), 1, hint_prompt=lambda task, attempt: f"ASKED {attempt.error!r}"
    )
    asyncio.run(sampler(TASK, Picky(), Coach("key", ("",), asked)))
    assert asked[2][1] == "ASKED ''"


def test_a_chat_is_shown_as_its_texts():
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "well?"})
    assert HintPrompt("{task}")(replace(TASK, prompt=chat), Rollout()) == "Be brief.\n\nwell?"
    assert HintPrompt("{solution}")(replace(TASK, columns={}), Rollout()) == "yes"


def test_a_hint_stands_between_its_tags():
    assert parse_hint("a <HINT>one\ntwo</HINT> b <hint>three</hint>") == "one\ntwo"
    assert parse_hint("<hint>unfinished") == ""
