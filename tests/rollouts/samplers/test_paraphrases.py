"""Rollouts of one task with differently worded prompts."""

import asyncio

import pytest

from grupo.config.validate import check_columns
from grupo.core.types import Response, Task
from grupo.envs.reward_term import RewardTerm
from grupo.envs.single_turn import SingleTurn
from grupo.method import Method
from grupo.rewards.majority_vote import CrossPromptSimilarity
from grupo.rollouts.samplers import ParaphraseSampler
from grupo.util.errors import ConfigError


class EchoActor:
    """Actor that generates its observation and the labels of its random stream."""

    def __init__(self, rng_key=()):
        self.rng_key = rng_key

    async def __call__(self, rollout, observation):
        text = f"{observation} {self.rng_key}"
        return Response((text,), (0.0,), text=text)

    def fork(self, *label):
        return EchoActor((*self.rng_key, *label))


def test_every_paraphrase_has_as_many_rollouts_and_all_are_scored_as_one_group():
    task = Task("k", "?", columns={"paraphrases": ["who", "whom"]})
    similarity = CrossPromptSimilarity(lambda a, b: float(a[:3] == b[:3]))
    env = SingleTurn((RewardTerm("agreement", similarity),))
    group = asyncio.run(ParaphraseSampler(2)(task, env, EchoActor()))
    assert [r.text for r in group.rollouts] == [
        f"{prompt} {rng_key}"
        for prompt, rng_key in (
            ("who", (0, 0)),
            ("who", (0, 1)),
            ("whom", (1, 0)),
            ("whom", (1, 1)),
        )
    ]
    assert group.rewards == (1.0,) * 4
    assert [r.reward_terms["agreement/prompt"] for r in group.rollouts] == [0, 0, 2, 2]


def test_tasks_without_the_paraphrase_column_raise_config_error():
    method = Method(sampler=ParaphraseSampler(2, column="wordings"))
    check_columns(method, [Task("k", "?", columns={"wordings": ["who"]})])
    with pytest.raises(ConfigError, match="wordings"):
        check_columns(method, [Task("k", "?")])
