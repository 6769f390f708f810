"""Groups of the rescue samplers, bit by bit, with an actor that answers by name of its stream."""

import asyncio
import hashlib
import json
from dataclasses import dataclass, replace

import pytest

from grupo.core.types import Response, RewardResult, Task
from grupo.rollouts.samplers import (
    GroupSampler,
    with_critique,
    with_hint,
    with_scaffold,
    with_self_hints,
)
from grupo.rollouts.samplers.trained_prompts import plain_prompt
from grupo.storage import rollout_json
from grupo.util.rng import make_rng

WORDS = ("no", "key", "<hint>push</hint>", "<hint>yes</hint>", "yes")
COLUMNS = {"hint": "say it", "hints": ["mm", ["say", "it"], "key"], "solution": "by nodding"}
TASKS = [Task(f"t{i}", f"well {i}?", "yes", columns=COLUMNS) for i in range(40)]


@dataclass(frozen=True)
class NamedStream:
    """Actor whose answers are derived from the names of its forks and the prompt."""

    names: tuple = ()

    async def __call__(self, rollout, prompt):
        rng = make_rng(7, *self.names, str(prompt))
        text = rng.choice(WORDS)
        return Response((text,), (-rng.random(),), (str(prompt),), text)

    def with_prompt(self, rollout, prompt):
        ((_, response),) = rollout.turns
        off_context = replace(response, observation=(str(prompt),), off_context=True)
        return replace(rollout, turns=((prompt, off_context),))

    def fork(self, *label):
        return replace(self, names=(*self.names, *label))

    def rng(self, *label):
        return make_rng(7, *self.names, *label)


class YesEnv:
    """Environment of one turn with reward 1 for "yes"; a rollout with "key" has an error."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [
            RewardResult(error="broken")
            if r.text == "key"
            else RewardResult(float(r.text == "yes"), {"right": float(r.text == "yes")})
            for r in rollouts
        ]


def digest(sampler) -> str:
    """Digest of the groups of all tasks."""
    groups = [asyncio.run(sampler(task, YesEnv(), NamedStream())) for task in TASKS]
    rollouts = [rollout_json.to_data(r) for group in groups for r in group.rollouts]
    for _, response in (turn for rollout in rollouts for turn in rollout["turns"]):
        assert not response.pop("rewrites_history")  # fields that are newer than the digests
        assert response.pop("routes") == ""
    return hashlib.blake2b(json.dumps(rollouts, sort_keys=True).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (with_hint(GroupSampler(3)), "f137a66fb6314059"),
        (with_scaffold(GroupSampler(3)), "e39958d19455fa65"),
        (with_scaffold(GroupSampler(3), training_prompt=plain_prompt), "34c1a464855a0e17"),
        (with_critique(GroupSampler(3)), "780c4984d524f8ff"),
        (with_self_hints(GroupSampler(2), 3), "7a32c02882bbb418"),
    ],
)
def test_groups_are_those_of_the_samplers_that_were_classes_of_their_own(sampler, expected):
    assert digest(sampler) == expected
