"""SAGE: three levels of own hints, and the level of the light variant."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from grupo.core.task_statistic import ScoredGroup
from grupo.core.types import Group, Response, RewardResult, Rollout, Task
from grupo.method import Method
from grupo.methods.sage_self_hint import sage_self_hint
from grupo.rollouts.history import History
from grupo.rollouts.samplers import AtHintLevel, GroupSampler, HintLevel
from grupo.rollouts.samplers.leveled_hints import LEVELS
from grupo.rollouts.statistic_store import StatisticStore
from grupo.training.collect.groups import _with_history
from grupo.util.errors import ConfigError

TASK = Task("t", "q", "yes", columns={"solution": "by nodding"})


@dataclass(frozen=True)
class Hinter:
    """Actor that writes the hint `level-N`, and answers "yes" to prompts that end with `needed`."""

    needed: str
    prompts: list
    hint: str = "<hint>level-{level}</hint>"

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        levels = [number for number, text in enumerate(LEVELS, 1) if text in prompt]
        if levels:
            return Response(("h",), (-1.0,), (prompt,), self.hint.format(level=levels[0]))
        return Response(("x",), (-1.0,), (prompt,), "yes" if prompt.endswith(self.needed) else "no")

    def fork(self, *label):
        return self


class YesEnv:
    """Environment of one turn with reward 1 for "yes"."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.text == "yes")) for rollout in rollouts]


def sample(needed, sampler=None, task=TASK, **actor):
    """The group and the prompts, hint prompts by their level."""
    prompts = []
    sampler = sampler or sage_self_hint(2).sampler
    group = asyncio.run(sampler(task, YesEnv(), Hinter(needed, prompts, **actor)))
    names = {text: f"write {number}" for number, text in enumerate(LEVELS, 1)}
    return group, [next((n for t, n in names.items() if t in p), p) for p in prompts]


def test_levels_are_tried_until_one_rollout_is_correct():
    first, second, third = (f"q\n\nlevel-{number}" for number in (1, 2, 3))
    group, prompts = sample("level-2")
    assert prompts == ["q", "q", "write 1", first, first, "write 2", second, second]
    assert group.rewards == (1.0, 1.0)  # hints are not in the group
    assert {rollout.turns[0][0] for rollout in group.rollouts} == {second}
    assert sample("q")[1] == ["q", "q"]
    group, prompts = sample("never")
    assert prompts[-3:] == ["write 3", third, third]
    assert group.rewards == (0.0, 0.0)
    assert group.rollouts[0].turns[0][0] == third


def test_hint_that_holds_the_answer_is_rejected():
    group, prompts = sample("never", hint="<hint>Say yes!</hint>")
    assert prompts == ["q", "q", "write 1", "write 2", "write 3"]
    assert {rollout.turns[0][0] for rollout in group.rollouts} == {"q"}
    assert sample("never", hint="no tags")[1] == prompts


def test_level_rises_after_failures_and_falls_after_successes():
    level, state, levels = HintLevel(), HintLevel().initial_state, []
    for accuracy in (0.0, 0.0, 0.2, 0.5, 0.9):
        correct = round(10 * accuracy)
        state = level(state, ScoredGroup(0, (1.0,) * correct + (0.0,) * (10 - correct)))
        levels.append(state[0])
    assert levels == [1, 2, 2, 1, 0]
    assert level((3.0,), ScoredGroup(0, (0.0,))) == (3.0,)  # the highest level
    assert level((0.0,), ScoredGroup(0, (1.0,))) == (0.0,)
    one_of_ten = ScoredGroup(0, (1.0,) + (0.0,) * 9)
    assert level((0.0,), one_of_ten) == (1.0,)  # 0.1 of run_sage.sh
    assert HintLevel(low=0.0)((0.0,), one_of_ten) == (0.0,)
    with pytest.raises(ConfigError, match=r"HintLevel\.high: 0\.1\. Allowed: at least low"):
        HintLevel(low=0.2, high=0.1)


def test_light_variant_generates_one_group_at_the_level_of_the_history():
    sampler = AtHintLevel(GroupSampler(2))
    statistics = Method(sampler=sampler).requires.task_statistics
    assert statistics == (HintLevel(),)
    history = History(statistics_by_task=StatisticStore(statistics))
    failed = Group(TASK, (Rollout(reward=0.0),) * 2)
    for level in (0, 1, 2):
        task = _with_history(TASK, history, Method(sampler=sampler))
        group, prompts = sample("never", sampler, task)
        hinted = f"q\n\nlevel-{level}"
        expected = [f"write {level}", hinted, hinted] if level else ["q", "q"]
        assert prompts == expected
        assert group.task.prompt == "q"
        history.append_groups(level, [failed])
    assert replace(TASK, statistic_states={}).state(HintLevel()) == (0.0,)
