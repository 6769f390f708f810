"""Hints, second attempts and replays of a real policy: what is learned is of the plain prompt."""

import asyncio

import pytest
import torch

from grupo.algo import ratios
from grupo.algo.filters import Replay
from grupo.core.types import Group, RewardResult, Rollout, Task
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler, WithCritique, WithHint, WithScaffold
from grupo.training.collate import collate
from tests.helpers.tiny_lm import built

TASK = Task("t", "Well?", "z", columns={"hint": "be short", "hints": ["be short", "say z"]})


class Second:
    """Wrong at first, right when asked again."""

    def __init__(self) -> None:
        self.calls = 0

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        self.calls += 1
        return [RewardResult(float(self.calls > 1)) for _ in rollouts]


@pytest.fixture
def policy(llama) -> CausalPolicy:
    return built(llama)


def sampled(policy, sampler) -> Group:
    return asyncio.run(sampler(TASK, Second(), policy.actor(5)))


def tokens(rollout: Rollout) -> tuple[int, ...]:
    return rollout.turns[0][1].items


def no(task: Task, rollout: Rollout) -> str:
    return "No."


@pytest.mark.parametrize(
    "sampler",
    [WithHint(GroupSampler(2)), WithCritique(GroupSampler(2), no, retry_instruction="Again:")],
)
def test_what_was_drawn_with_help_is_read_without(policy, sampler):
    group = sampled(policy, sampler)
    batch = collate([group], policy.encode)
    helped = [i for i, r in enumerate(group.rollouts) if r.source != "policy"]
    own = [i for i, r in enumerate(group.rollouts) if r.source == "policy"]
    assert helped
    assert own
    pi = policy.signals(batch)
    r = ratios.token(pi, batch)
    torch.testing.assert_close(r[own][batch.mask[own]], torch.ones(int(batch.mask[own].sum())))
    for i in helped:
        ((seen, action),) = group.rollouts[i].turns
        assert (seen, action.observation) == (TASK.prompt, policy.encode_observation(Rollout(), TASK.prompt))
        here = pi.logp[i][batch.mask[i]].exp() / torch.tensor(action.logp).exp()
        torch.testing.assert_close(r[i][batch.mask[i]], here, atol=1e-5, rtol=1e-4)
        assert (here - 1).abs().max() > 1e-2  # the help did matter


def test_a_scaffolded_rollout_is_read_with_its_hint(policy):
    group = sampled(policy, WithScaffold(GroupSampler(2)))
    assert group.rewards == (1.0, 0.0)
    batch = collate([group], policy.encode)
    ratio = ratios.token(policy.signals(batch), batch)[batch.mask]
    torch.testing.assert_close(ratio, torch.ones_like(ratio), atol=1e-4, rtol=0)


def test_a_replayed_rollout_has_its_tokens_and_the_log_probabilities_of_then(policy):
    history, replay = History(), Replay(1)
    early = sampled(policy, GroupSampler(2))
    right = Group(TASK, tuple(_earning(r, i) for i, r in enumerate(early.rollouts)))
    history.append_groups(0, [right], num_replays=replay.num_replays)
    task = History.from_data(history.to_data(), history.tensors()).with_replays(TASK)
    (joined,) = replay([Group(task, asyncio.run(_now(policy)).rollouts)])
    *_, old = joined.rollouts
    assert (old.source, tokens(old)) == ("replayed", tokens(early.rollouts[1]))
    batch = collate([joined], policy.encode)
    assert batch.signals["off_context"][:, 0].tolist() == [0.0, 0.0, 1.0]
    then = early.rollouts[1].turns[0][1].logp
    assert batch.old_logp[2][batch.mask[2]].tolist() == pytest.approx(then)


def _earning(rollout: Rollout, reward: float) -> Rollout:
    return Rollout(rollout.turns, float(reward))


async def _now(policy) -> Group:
    return await GroupSampler(2)(TASK, Second(), policy.actor(6))
