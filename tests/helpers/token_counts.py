"""A task, an environment and a policy whose generated tokens are counted."""

from collections.abc import Mapping

import pytest

from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.samplers import Sampler
from grupo.rollouts.samplers.pruning import QUALITY_HEAD
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_lm
from tests.helpers.drawing_engine import DrawingEngine

STOP = "."
TASK = Task(
    "t",
    "Q",
    "ab",
    columns={
        "solution": "ab",
        "paraphrases": ("Q", "R"),
        "steps": ("a", "b"),
        "step_labels": (1.0, 0.0),
        "hint": "d",
        "label": True,
        "rate": 0.5,
        "hints": ["d", ["e", "f"]],
    },
    replays=(Rollout(reward=0.0),),
)


class TwoTurnEnv:
    """Environment of two turns, in which every answer is wrong."""

    async def reply(self, task, rollout):
        observations = (task.prompt, "And?", None)
        return observations[min(2, sum(bool(observation) for observation, _ in rollout.turns))]

    async def score(self, task, rollouts):
        return [RewardResult(0.0) for _ in rollouts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_lm.save_model(tmp_path_factory.mktemp("model"), max_position_embeddings=999))


@pytest.fixture(scope="module")
def policy(folder: str) -> CausalPolicy:
    policy = CausalLM(folder, max_new_tokens=12).build()
    policy.attach_heads((QUALITY_HEAD,))
    return policy


@pytest.fixture
def engine(policy: CausalPolicy) -> DrawingEngine:
    return DrawingEngine(policy, STOP)


def count(sampler: Sampler, policy: HasActor) -> tuple[Group, Mapping[str, int]]:
    """The sampler's group, and the generated tokens that the actor has counted by role."""
    actor = policy.actor(3)
    group = run_coroutine(sampler(TASK, TwoTurnEnv(), actor.fork("group")))
    return group, actor.generated_tokens


def num_returned(group: Group) -> int:
    return sum(len(a.items) for r in group.rollouts for _, a in r.turns if a.sampled)
