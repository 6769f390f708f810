"""Rescue samplers: the order of attempts, the answers that are kept, and nested samplers."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.component import component
from grupo.core.types import Group, Response, RewardResult, Rollout, Task
from grupo.rollouts.samplers import (
    AllIncorrect,
    GroupSampler,
    HintColumn,
    ResampleUntilInformative,
    Rescue,
    RescueAttempt,
    WithGreedyBaseline,
    with_self_hints,
)
from grupo.rollouts.samplers.merge_rules import (
    add_all,
    best_replaces_first,
    replace_all,
)
from grupo.rollouts.samplers.rescue import every_group
from grupo.rollouts.samplers.self_hint import HintPrompt
from grupo.rollouts.samplers.trained_prompts import keep_generation_prompt, plain_prompt, recited
from grupo.rollouts.turns import ForcedStart
from grupo.util.errors import ConfigError

COLUMNS = {"weak": "a", "strong": "ab", "solution": "abc"}
TASK = Task("t", "q", "yes", columns=COLUMNS)
WEAK, STRONG = HintColumn("weak", "+"), HintColumn("strong", "+")


@dataclass(frozen=True)
class Reader:
    """Actor that answers "yes" to prompts that end with `key`, else the prompt itself.

    Every call is appended to `requests` as (names of the forks, prompt).
    """

    key: str
    requests: list
    names: tuple = ()
    temperature: float = 1.0

    async def __call__(self, rollout, prompt):
        self.requests.append((self.names, prompt))
        if prompt.endswith("full"):
            return Response((), (), (), "", "length")
        text = "yes" if prompt.endswith(self.key) else prompt
        return Response((text,), (-1.0,), (prompt,), text)

    async def append_unsampled(self, rollout, prompt, text):
        return Response((text,), (0.0,), (prompt,), text, sampled=False)

    def with_prompt(self, rollout, prompt):
        ((_, response),) = rollout.turns
        moved = replace(response, observation=(prompt,), off_context=True)
        return replace(rollout, turns=((prompt, moved),))

    def fork(self, *label):
        return replace(self, names=(*self.names, label))

    def with_sampling(self, temperature=1.0, top_k=0):
        return self


class YesEnv:
    """Environment of one turn with reward 1 for "yes", 0.1 for an answer with "b", else 0."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        assert task.prompt == "q"
        return [RewardResult(1.0 if r.text == "yes" else 0.1 * ("b" in r.text)) for r in rollouts]


def sample(sampler, key, task=TASK):
    """The group, and the requests to the actor."""
    requests = []
    return asyncio.run(sampler(task, YesEnv(), Reader(key, requests))), requests


def texts(group):
    return [rollout.text for rollout in group.rollouts]


def test_attempts_are_made_in_order_until_the_group_is_no_longer_all_incorrect():
    sampler = Rescue(
        GroupSampler(2), (RescueAttempt(WEAK), RescueAttempt(STRONG), RescueAttempt(WEAK))
    )
    for key, count in (("q", 2), ("+a", 4), ("+ab", 8), ("never", 16)):
        group, requests = sample(sampler, key)
        assert len(requests) == len(group.rollouts) == count
        assert len({names for names, _ in requests}) == count  # a random stream for each
    # each attempt asks for as many answers as the group then has: 2, 4, 8
    assert [prompt for _, prompt in requests] == ["q"] * 2 + ["q+a"] * 2 + ["q+ab"] * 4 + [
        "q+a"
    ] * 8


def test_attempt_without_prompts_leaves_the_group_as_it_is():
    sampler = Rescue(
        GroupSampler(2), (RescueAttempt(HintColumn("absent"), replace_all), RescueAttempt(WEAK))
    )
    group, _ = sample(sampler, "+a")
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)


def test_prompt_without_room_for_an_answer_gets_none():
    task = replace(TASK, columns={"weak": "full", "strong": "ab"})
    group, requests = sample(
        Rescue(GroupSampler(2), (RescueAttempt(WEAK, replace_all),)), "never", task
    )
    assert texts(group) == ["q", "q"]
    assert len(requests) == 4


@pytest.mark.parametrize(
    ("keep", "rewards"),
    [
        (add_all, (0.0, 0.0, 0.1, 0.1)),
        (replace_all, (0.1, 0.1)),
        (best_replaces_first, (0.1, 0.0)),
    ],
)
def test_answers_are_merged_into_the_group(keep, rewards):
    assert (
        sample(Rescue(GroupSampler(2), (RescueAttempt(STRONG, keep),)), "never")[0].rewards
        == rewards
    )


def test_rollouts_are_trained_under_the_asked_prompt_the_plain_prompt_or_as_demonstrations():
    def trained(prompt):
        attempt = RescueAttempt(WEAK, replace_all, prompt, "helped")
        group, _ = sample(Rescue(GroupSampler(1), (attempt,)), "+a")
        (rollout,) = group.rollouts
        ((observation, response),) = rollout.turns
        assert (rollout.text, rollout.source) == ("yes", "helped")
        return observation, response.logp, response.sampled, response.off_context

    assert trained(keep_generation_prompt) == ("q+a", (-1.0,), True, False)
    assert trained(plain_prompt) == ("q", (-1.0,), True, True)
    assert trained(recited) == ("q", (0.0,), False, False)


def test_three_nested_samplers_give_the_definition_and_every_answer_is_asked_for_once():
    inner = Rescue(GroupSampler(2), (RescueAttempt(WEAK, replace_all),))
    middle = Rescue(inner, (RescueAttempt(STRONG, best_replaces_first, plain_prompt),))
    outer = WithGreedyBaseline(middle)
    # greedy answer of the plain prompt: "q", reward 0, beside each group
    for key, expected, count in (
        ("q", ["yes", "yes"], 3),
        ("+a", ["yes", "yes"], 5),
        ("+ab", ["yes", "q+a"], 7),
        ("never", ["q+ab", "q+a"], 7),
    ):
        group, requests = sample(outer, key)
        assert texts(group) == expected
        assert len(requests) == len({names for names, _ in requests}) == count
        greedy = 1.0 if key == "q" else 0.0
        assert {r.reward_terms["greedy"] for r in group.rollouts} == {greedy}
    assert outer.group_size == middle.group_size == 2


def test_rescue_in_a_rescue_around_resampling_reads_the_last_group():
    again = ResampleUntilInformative(GroupSampler(2), 3)
    sampler = Rescue(Rescue(again, (RescueAttempt(WEAK),)), (RescueAttempt(STRONG, replace_all),))
    group, requests = sample(sampler, "+ab")
    # three groups of 2, two answers with the weak hint, then 4 that replace the group of 4
    assert (texts(group), len(requests)) == (["yes"] * 4, 3 * 2 + 2 + 4)
    assert sampler.group_size == 0  # resampling does not fix it


def test_reward_terms_of_an_attempt_are_0_for_other_rollouts_at_every_depth():
    hints = with_self_hints(GroupSampler(2), 1, HintPrompt("{attempt}"), str, "+")
    group, _ = sample(Rescue(hints, (RescueAttempt(STRONG, add_all),), every_group), "q")
    assert [r.reward_terms.get("hint_index") for r in group.rollouts] == [0.0, 0.0, None, None]
    around = replace(hints, inner=Rescue(GroupSampler(2), (RescueAttempt(WEAK),)))
    assert {r.reward_terms["is_hint"] for r in sample(around, "+a")[0].rollouts} == {0.0}


def test_attempt_takes_its_turns_by_its_strategy():
    @component
    class Twice:
        async def __call__(self, actor, rollout, observation):
            await actor(rollout, observation)
            return rollout.append_turn(observation, await actor(rollout, observation))

    attempt = RescueAttempt(WEAK, turn_strategy=Twice())
    assert len(sample(Rescue(GroupSampler(1), (attempt,)), "+a")[1]) == 3
    forced = GroupSampler(1, ForcedStart(","))
    assert with_self_hints(forced).attempts[0].turn_strategy == forced.turn_strategy


def test_all_incorrect_ignores_failures_and_unsuccessful_groups_are_rescued_by_threshold():
    failed, half = Rollout(error="hung"), Rollout(reward=0.5)
    assert AllIncorrect()(Group(TASK, (failed, half)))
    assert not AllIncorrect(0.4)(Group(TASK, (failed, half)))
    assert not AllIncorrect()(Group(TASK, (failed,)))


def test_attempt_without_a_source_is_refused():
    with pytest.raises(ConfigError, match=r"RescueAttempt\.source"):
        RescueAttempt(WEAK, source="")
