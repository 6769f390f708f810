"""A policy that says "yes" where it has read the right word, in a world that wants to hear it."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.errors import ConfigError
from grupo.core.schedules import Switch, as_float, resolve_schedules
from grupo.core.types import Action, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithCritique, WithHint, WithScaffold
from grupo.rollouts.samplers.critique import correctness_sentence
from grupo.rollouts.samplers.hints import append_to_prompt, check_no_leak

TASK = Task("t", "well?", "yes", columns={"hint": "say it", "hints": ["mm", ["say", "it"], "key"]})


@dataclass(frozen=True)
class Reader:
    """Says "yes" after reading `status`, else "no"; its log-probability is -1 after a hint, else -3.

    Keeps what it was asked, and by which name.
    """

    word: str
    asked: list
    name: str = ""

    async def __call__(self, rollout, seen):
        self.asked.append((self.name, seen))
        text = "yes" if self.word in str(seen) else "no"
        return Action((text,), (-3.0 if seen == TASK.prompt else -1.0,), (seen,), text)

    def with_prompt(self, rollout, seen):
        ((_, action),) = rollout.turns
        return replace(
            rollout, turns=((seen, replace(action, observation=(seen,), off_context=True)),)
        )

    def fork(self, *label):
        return replace(self, name="/".join(map(str, (self.name, *label))))


class World:
    """One turn, and 1 for "yes"; what says "broken" cannot be judged."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        assert task.prompt == TASK.prompt  # whatever was asked, the task is judged
        return [
            RewardResult(error="broken")
            if "broken" in r.text
            else RewardResult(float(r.text == "yes"))
            for r in rollouts
        ]


def sample(sampler, word="say", task=TASK):
    asked = []
    return asyncio.run(sampler(task, World(), Reader(word, asked))), asked


def seen(rollout):
    return rollout.turns[0][0]


def test_where_all_are_wrong_as_many_more_see_the_hint_and_are_moved_behind_the_prompt():
    group, asked = sample(WithHint(GroupSampler(2)))
    assert group.rewards == (0.0, 0.0, 1.0, 1.0)
    assert [r.source for r in group.rollouts] == ["policy", "policy", "with_hint", "with_hint"]
    assert {prompt for _, prompt in asked[2:]} == {"well?\n\nHint: say it"}
    assert {seen(r) for r in group.rollouts} == {"well?"}
    (one,) = {action for r in group.rollouts[2:] for _, action in r.turns}
    assert (one.off_context, one.logp, one.observation) == (
        True,
        (-1.0,),
        ("well?",),
    )  # logp of then
    assert len({name for name, _ in asked}) == 4  # each has a stream of its own


def test_who_gets_it_right_alone_sees_no_hint():
    group, asked = sample(WithHint(GroupSampler(2)), word="well")
    assert group.rewards == (1.0, 1.0)
    assert len(asked) == 2


def test_what_counts_as_right_is_a_choice():
    assert (
        len(sample(WithHint(GroupSampler(2), success_threshold=1.0), word="well")[0].rollouts) == 4
    )


def test_a_task_without_hints_gets_none():
    plain = replace(TASK, columns={})
    for sampler in (WithHint(GroupSampler(2)), WithScaffold(GroupSampler(2))):
        assert sample(sampler, task=plain)[0].rewards == (0.0, 0.0)


def test_a_hint_in_a_chat_is_said_by_the_user():
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


def test_a_hint_that_gives_the_answer_away_is_refused_where_it_is_guarded():
    leaking = replace(TASK, columns={"hint": "It is yes."})
    guarded = WithHint(GroupSampler(2), reject_leaks=True)
    for work in (
        lambda: guarded.validate_tasks([TASK, leaking]),
        lambda: sample(guarded, task=leaking),
    ):
        with pytest.raises(ConfigError) as refusal:
            work()
        said = "tasks: the hint of task t, column 'hint', contains its answer, 'yes'."
        assert str(refusal.value) == said
    WithHint(GroupSampler(2)).validate_tasks([leaking])  # it is not asked to guard


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
def test_an_answer_leaks_as_a_word_of_its_own(answer, hint, leaks):
    task = Task("t", "?", answer, columns={"hint": hint})
    if leaks:
        with pytest.raises(ConfigError):
            check_no_leak(task, "hint")
    else:
        check_no_leak(task, "hint")


def test_the_lowest_level_that_is_right_replaces_one_rollout_and_keeps_its_hint():
    group, asked = sample(WithScaffold(GroupSampler(3)), word="it")
    # levels: "mm", "say", "say\nit", "key": the third is the first with "it"
    assert [prompt.partition("Hint: ")[2] for _, prompt in asked[3:]] == [
        "mm",
        "say",
        "say\nit",
        "key",
    ]
    assert group.rewards == (1.0, 0.0, 0.0)
    assert seen(group.rollouts[0]) == "well?\n\nHint: say\nit"
    assert group.rollouts[0].source == "with_scaffold"
    assert not group.rollouts[0].turns[0][1].off_context


def test_the_hint_may_be_hidden():
    group, _ = sample(WithScaffold(GroupSampler(3), hide_hint=True), word="it")
    assert group.rewards == (1.0, 0.0, 0.0)
    assert seen(group.rollouts[0]) == "well?"
    assert group.rollouts[0].turns[0][1].off_context


def test_no_level_that_helps_changes_nothing():
    group, asked = sample(WithScaffold(GroupSampler(2)), word="never")
    assert group.rewards == (0.0, 0.0)
    assert {r.source for r in group.rollouts} == {"policy"}
    assert len(asked) == 2 + 4


def test_only_the_first_levels_are_tried_and_none_in_the_warm_up():
    assert sample(WithScaffold(GroupSampler(2), max_levels=2.0), word="it")[0].rewards == (0.0, 0.0)
    method = Method(
        sampler=WithScaffold(GroupSampler(2), max_levels=as_float(Switch(0.15, 0.0, 12.0)))
    )
    young, old = (sample(resolve_schedules(method, p).sampler, word="it") for p in (0.1, 0.2))
    assert (len(young[1]), len(old[1])) == (2, 6)


def test_every_rollout_is_tried_again_and_the_first_of_the_best_takes_the_first_place():
    group, asked = sample(WithCritique(GroupSampler(3)), word="wrong")
    assert group.rewards == (1.0, 0.0, 0.0)
    assert [r.source for r in group.rollouts] == ["with_critique", "policy", "policy"]
    assert len(asked) == 3 + 3
    said = "well?\n\nYour answer: no\n\nThis is wrong. The right answer is yes.\n\nAnswer again."
    assert {prompt for _, prompt in asked[3:]} == {said}
    assert seen(group.rollouts[0]) == "well?"
    assert group.rollouts[0].turns[0][1].off_context
    assert group.rollouts[0].turns[0][1].logp == (-1.0,)


def test_one_is_kept_even_if_no_second_attempt_is_right():
    group, _ = sample(WithCritique(GroupSampler(3), correctness_sentence), word="never")
    assert group.rewards == (0.0, 0.0, 0.0)
    assert group.rollouts[0].source == "with_critique"


def test_what_could_not_be_judged_is_not_tried_again():
    class Broken(World):
        async def score(self, task, rollouts):
            return [RewardResult(error="it hung") for _ in rollouts]

    for sampler in (
        WithCritique(GroupSampler(2)),
        WithHint(GroupSampler(2)),
        WithScaffold(GroupSampler(2)),
    ):
        asked = []
        group = asyncio.run(sampler(TASK, Broken(), Reader("say", asked)))
        assert len(asked) == len(group.rollouts) == 2


def test_groups_say_their_size_and_what_they_read():
    assert (WithHint(GroupSampler(4)).group_size, WithHint(GroupSampler(4)).required_columns) == (
        4,
        ("hint",),
    )
    assert (
        WithScaffold(GroupSampler(4)).group_size,
        WithScaffold(GroupSampler(4)).required_columns,
    ) == (
        4,
        ("hints",),
    )
    assert WithCritique(GroupSampler(4)).group_size == 4
    assert Rollout().source == "policy"


def test_of_several_levels_that_help_the_lowest_is_taken():
    group, _ = sample(WithScaffold(GroupSampler(2)), word="say")  # "say" and "say\nit"
    assert seen(group.rollouts[0]) == "well?\n\nHint: say"


@dataclass(frozen=True)
class Late(Reader):
    """Right in the second and third of its second attempts, whose log-probabilities tell them."""

    async def __call__(self, rollout, seen):
        number = float(self.name[-1])
        right = "refined" in self.name and number > 0
        return Action(("w",), (-number,), (seen,), "yes" if right else "no")


def test_of_several_right_second_attempts_the_first_is_kept():
    group = asyncio.run(WithCritique(GroupSampler(3))(TASK, World(), Late("", [])))
    assert group.rewards == (1.0, 0.0, 0.0)
    assert group.rollouts[0].turns[0][1].logp == (-1.0,)
