"""Samplers with hints, scaffolds and critiques, with an actor that generates "yes" or "no"."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.config.validate import check_component_tasks
from grupo.core.requires import merged_requires
from grupo.core.schedules import Switch, resolve_schedules
from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, with_critique, with_hint, with_scaffold
from grupo.rollouts.samplers.critique import correctness_sentence
from grupo.rollouts.samplers.hints import append_to_prompt, check_no_leak
from grupo.rollouts.samplers.trained_prompts import plain_prompt
from grupo.util.errors import ConfigError

TASK = Task("t", "well?", "yes", columns={"hint": "say it", "hints": ["mm", ["say", "it"], "key"]})


@dataclass(frozen=True)
class KeywordActor:
    """Actor that generates "yes" if the prompt contains `word`, else "no".

    The logp is -3 after the plain prompt, else -1. Every call is appended to `requests` as
    (name of the fork, prompt).
    """

    word: str
    requests: list
    name: str = ""

    async def __call__(self, rollout, prompt):
        self.requests.append((self.name, prompt))
        text = "yes" if self.word in str(prompt) else "no"
        logp = -3.0 if prompt == TASK.prompt else -1.0
        return Response((text,), (logp,), (prompt,), text)

    def with_prompt(self, rollout, prompt):
        ((_, response),) = rollout.turns
        off_context = replace(response, observation=(prompt,), off_context=True)
        return replace(rollout, turns=((prompt, off_context),))

    def fork(self, *label):
        return replace(self, name="/".join(map(str, (self.name, *label))))


class YesEnv:
    """Environment of one turn with reward 1 for "yes"; a rollout with "broken" has an error."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        assert task.prompt == TASK.prompt  # hinted rollouts are scored without the hint
        return [
            RewardResult(error="broken")
            if "broken" in r.text
            else RewardResult(float(r.text == "yes"))
            for r in rollouts
        ]


def sample(sampler, word="say", task=TASK):
    """The group, and the requests to the actor."""
    requests = []
    return asyncio.run(sampler(task, YesEnv(), KeywordActor(word, requests))), requests


def shown_prompt(rollout):
    return rollout.turns[0][0]


def test_hinted_rollouts_are_added_when_all_are_incorrect_and_moved_behind_the_plain_prompt():
    group, requests = sample(with_hint(GroupSampler(2)))
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)
    assert [r.source for r in group.rollouts] == ["policy", "policy", "with_hint", "with_hint"]
    assert {prompt for _, prompt in requests[2:]} == {"well?\n\nHint: say it"}
    assert {shown_prompt(r) for r in group.rollouts} == {"well?"}
    (response,) = {response for r in group.rollouts[2:] for _, response in r.turns}
    assert response.off_context
    assert response.logp == (-1.0,)  # as generated, with the hint
    assert response.observation == ("well?",)
    assert len({name for name, _ in requests}) == 4  # each has its own random stream


def test_group_with_a_correct_rollout_gets_no_hint():
    group, requests = sample(with_hint(GroupSampler(2)), word="well")
    assert group.rewards == (1.0, 1.0)
    assert len(requests) == 2


def test_success_threshold_defines_correct_rollouts():
    group, _ = sample(with_hint(GroupSampler(2), success_threshold=1.0), word="well")
    assert len(group.rollouts) == 4


def test_task_without_hints_keeps_its_plain_group():
    plain = replace(TASK, columns={})
    for sampler in (with_hint(GroupSampler(2)), with_scaffold(GroupSampler(2))):
        assert sample(sampler, task=plain)[0].rewards == (0.0, 0.0)


def test_hint_of_a_chat_is_appended_to_the_users_message():
    chat = ({"role": "system", "content": "s"}, {"role": "user", "content": "q"})
    assert append_to_prompt(Task("t", chat), " h").prompt == (
        chat[0],
        {"role": "user", "content": "q h"},
    )
    answered = (*chat, {"role": "assistant", "content": "a"})
    assert append_to_prompt(Task("t", answered), "\n\nh").prompt[-1] == {
        "role": "user",
        "content": "h",
    }


def test_reject_leaks_raises_for_a_hint_that_contains_the_answer():
    leaking = replace(TASK, columns={"hint": "It is yes."})
    rejecting = with_hint(GroupSampler(2), reject_leaks=True)
    for check in (
        lambda: check_component_tasks(rejecting, [TASK, leaking]),
        lambda: sample(rejecting, task=leaking),
    ):
        with pytest.raises(ConfigError) as caught:
            check()
        message = "tasks: the hint of task t, column 'hint', contains its answer, 'yes'."
        assert str(caught.value) == message
    check_component_tasks(with_hint(GroupSampler(2)), [leaking])  # reject_leaks is off


@pytest.mark.parametrize(
    ("answer", "hint", "leaks"),
    [
        (4, "Add 2 and 2: 4.", True),
        (4, "Think of 42, 14 and 4.5.", False),
        (4.5, "Is it 4.5?", True),
        ("x + 1", "try (x + 1)", True),
        (None, "None of it", False),
        ("", "anything", False),
    ],
)
def test_answer_leaks_only_as_a_separate_word(answer, hint, leaks):
    task = Task("t", "?", answer, columns={"hint": hint})
    if leaks:
        with pytest.raises(ConfigError):
            check_no_leak(task, "hint")
    else:
        check_no_leak(task, "hint")


def test_lowest_correct_level_replaces_the_first_rollout_and_keeps_its_hint():
    group, requests = sample(with_scaffold(GroupSampler(3)), word="it")
    # levels: "mm", "say", "say\nit", "key": the third is the first with "it"
    assert [prompt.partition("Hint: ")[2] for _, prompt in requests[3:]] == [
        "mm",
        "say",
        "say\nit",
        "key",
    ]
    assert group.rewards == (1.0, 0.0, 0.0)
    assert shown_prompt(group.rollouts[0]) == "well?\n\nHint: say\nit"
    assert group.rollouts[0].source == "with_scaffold"
    assert not group.rollouts[0].turns[0][1].off_context


def test_scaffolded_rollout_may_be_moved_behind_the_plain_prompt():
    group, _ = sample(with_scaffold(GroupSampler(3), training_prompt=plain_prompt), word="it")
    assert group.rewards == (1.0, 0.0, 0.0)
    assert shown_prompt(group.rollouts[0]) == "well?"
    assert group.rollouts[0].turns[0][1].off_context


def test_group_is_unchanged_if_no_level_is_correct():
    group, requests = sample(with_scaffold(GroupSampler(2)), word="never")
    assert group.rewards == (0.0, 0.0)
    assert {r.source for r in group.rollouts} == {"policy"}
    assert len(requests) == 2 + 4


def test_max_levels_limits_the_levels_and_may_be_a_schedule():
    assert sample(with_scaffold(GroupSampler(2), max_levels=2.0), word="it")[0].rewards == (
        0.0,
        0.0,
    )
    method = Method(sampler=with_scaffold(GroupSampler(2), max_levels=Switch(0.15, 0.0, 12.0)))
    _, requests_in_warm_up = sample(resolve_schedules(method, 0.1).sampler, word="it")
    _, requests_later = sample(resolve_schedules(method, 0.2).sampler, word="it")
    assert (len(requests_in_warm_up), len(requests_later)) == (2, 6)


def test_best_second_attempt_replaces_the_first_rollout():
    group, requests = sample(with_critique(GroupSampler(3)), word="wrong")
    assert group.rewards == (1.0, 0.0, 0.0)
    assert [r.source for r in group.rollouts] == ["with_critique", "policy", "policy"]
    assert len(requests) == 3 + 3
    retry_prompt = (
        "well?\n\nYour answer: no\n\nThis is wrong. The right answer is yes.\n\nAnswer again."
    )
    assert {prompt for _, prompt in requests[3:]} == {retry_prompt}
    assert shown_prompt(group.rollouts[0]) == "well?"
    assert group.rollouts[0].turns[0][1].off_context
    assert group.rollouts[0].turns[0][1].logp == (-1.0,)


def test_second_attempt_replaces_the_first_rollout_even_if_all_are_incorrect():
    group, _ = sample(with_critique(GroupSampler(3), correctness_sentence), word="never")
    assert group.rewards == (0.0, 0.0, 0.0)
    assert group.rollouts[0].source == "with_critique"


def test_rollouts_with_errors_get_no_further_attempts():
    class Broken(YesEnv):
        async def score(self, task, rollouts):
            return [RewardResult(error="it hung") for _ in rollouts]

    for sampler in (
        with_critique(GroupSampler(2)),
        with_hint(GroupSampler(2)),
        with_scaffold(GroupSampler(2)),
    ):
        requests = []
        group = asyncio.run(sampler(TASK, Broken(), KeywordActor("say", requests)))
        assert len(requests) == len(group.rollouts) == 2


def test_wrapped_samplers_have_the_inner_group_size_and_required_columns():
    hint, scaffold = with_hint(GroupSampler(4)), with_scaffold(GroupSampler(4))
    assert (hint.group_size, merged_requires(hint).columns) == (4, {"hint"})
    assert (scaffold.group_size, merged_requires(scaffold).columns) == (4, {"hints"})
    assert with_critique(GroupSampler(4)).group_size == 4
    assert Rollout().source == "policy"


def test_lowest_of_several_correct_levels_is_kept():
    group, _ = sample(with_scaffold(GroupSampler(2)), word="say")  # "say" and "say\nit"
    assert shown_prompt(group.rollouts[0]) == "well?\n\nHint: say"


@dataclass(frozen=True)
class LateSuccess(KeywordActor):
    """Actor whose second and third second attempts are correct; the logp is minus their index."""

    async def __call__(self, rollout, prompt):
        index = float(self.name[-1])
        correct = "refined" in self.name and index > 0
        return Response(("w",), (-index,), (prompt,), "yes" if correct else "no")


def test_first_of_several_correct_second_attempts_is_kept():
    group = asyncio.run(with_critique(GroupSampler(3))(TASK, YesEnv(), LateSuccess("", [])))
    assert group.rewards == (1.0, 0.0, 0.0)
    assert group.rollouts[0].turns[0][1].logp == (-1.0,)
