"""The same question in other words."""

import asyncio

import pytest

from grupo.config.validate import check_columns
from grupo.core.errors import ConfigError
from grupo.core.types import Action, Task
from grupo.envs.scoring import RewardTerm
from grupo.envs.single_turn import SingleTurn
from grupo.method import Method
from grupo.rewards.majority_vote import CrossPromptSimilarity
from grupo.rollouts.samplers import ParaphraseSampler


class Echo:
    """A policy that says what it was asked, and in which stream."""

    def __init__(self, stream=()):
        self.rng_key = stream

    async def __call__(self, rollout, seen):
        text = f"{seen} {self.rng_key}"
        return Action((text,), (0.0,), text=text)

    def fork(self, *label):
        return Echo((*self.rng_key, *label))


def test_every_paraphrase_is_asked_as_often_and_all_are_judged_together():
    task = Task("k", "?", columns={"paraphrases": ["who", "whom"]})
    world = SingleTurn(
        (RewardTerm("agreement", CrossPromptSimilarity(lambda a, b: float(a[:3] == b[:3]))),)
    )
    group = asyncio.run(ParaphraseSampler(2)(task, world, Echo()))
    assert [r.text for r in group.rollouts] == [
        f"{prompt} {stream}"
        for prompt, stream in (("who", (0, 0)), ("who", (0, 1)), ("whom", (1, 0)), ("whom", (1, 1)))
    ]
    assert group.rewards == (1.0,) * 4
    assert [r.reward_terms["agreement/prompt"] for r in group.rollouts] == [0, 0, 2, 2]


def test_tasks_that_nobody_paraphrased_are_refused():
    method = Method(sampler=ParaphraseSampler(2, column="wordings"))
    check_columns(method, [Task("k", "?", columns={"wordings": ["who"]})])
    with pytest.raises(ConfigError, match="wordings"):
        check_columns(method, [Task("k", "?")])
