"""ExPO: imitation of own explanations beside GRPO."""

import asyncio
from dataclasses import dataclass, replace

import pytest
import torch

from grupo.config.validate import check_component_tasks
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Response, RewardResult, Rollout, Task
from grupo.methods.expo_self_explanation import expo_self_explanation
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.rollouts.samplers import RecitedExplanation
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.errors import ConfigError

TASK = Task("t", "6 * 7 =", 42)


@dataclass(frozen=True)
class Explainer:
    """Actor that explains an answer in its prompt and fails without it."""

    prompts: list

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        return Response(("x",), (-0.5,), (prompt,), "7 sixes" if "42" in prompt else "41")

    async def append_unsampled(self, rollout, prompt, text):
        return Response(tuple(text), (0.0,) * len(text), (prompt,), text, sampled=False)

    def fork(self, *label):
        return self


class OneTurn:
    """Environment of one turn with reward 1 for a text that holds the answer."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float("42" in rollout.text)) for rollout in rollouts]


def gradient(method, batch):
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0]] * len(batch.rollout))
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, pi.logp)[0]


def with_explanation(rewards):
    """Two plain rollouts of one token and an explanation of two."""
    sampled = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}
    return make_batch([0] * 3, reward=[*rewards, 1.0], length=[1, 1, 2], signals=sampled)


def test_explanation_is_asked_with_the_answer_and_recited_without_it():
    prompts = []
    sampler = expo_self_explanation(2).sampler
    group = asyncio.run(sampler(TASK, OneTurn(), Explainer(prompts)))
    assert prompts[:2] == ["6 * 7 ="] * 2
    assert prompts[2].startswith("6 * 7 =\n\nThe right answer is 42.")
    *_, explained = group.rollouts
    ((observation, response),) = explained.turns
    assert (observation, response.text) == ("6 * 7 =", "7 sixes\n\nThe answer is 42.")
    assert (explained.source, response.sampled) == ("explanation", False)
    assert group.rewards == (0.0, 0.0, 1.0)


def test_ending_is_not_repeated():
    ended = Rollout((("p", Response(("x",), (-1.0,), text="six sevens = 42")),))
    recite = RecitedExplanation(" = {answer}")
    rollout = asyncio.run(recite(ended, TASK, OneTurn(), Explainer([])))
    assert rollout.text == "six sevens = 42"


def test_group_of_failures_has_exactly_beta_times_the_gradient_of_imitation():
    batch = with_explanation([0.0, 0.0])
    method = resolve_schedules(expo_self_explanation(beta=0.1), 0.0)
    imitation = sft().replace(aggregation=method.aggregation)
    expected = gradient(imitation, batch)[2]
    # one explanation of two tokens: 1/2 for each
    assert expected.tolist() == pytest.approx([-0.5, -0.5])
    assert gradient(method, batch).tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
        pytest.approx((0.1 * expected).tolist()),
    ]


def test_beta_of_0_is_grpo_and_falls_linearly_to_0():
    batch = with_explanation([1.0, 0.0])
    plain = make_batch([0] * 2, reward=[1.0, 0.0], length=[1, 1])
    expected = gradient(grpo(2, kl_coef=0.0), plain)[:, 0]
    for method in (
        expo_self_explanation(beta=0.0),
        resolve_schedules(expo_self_explanation(beta=0.1), 1.0),
    ):
        actual = gradient(resolve_schedules(method, 0.0), batch)
        assert actual[:2, 0].tolist() == pytest.approx(expected.tolist())
        assert actual[2].tolist() == [0.0, 0.0]
    half = gradient(resolve_schedules(expo_self_explanation(beta=0.1), 0.5), batch)
    assert half[2].tolist() == pytest.approx([-0.05 / 2] * 2)


def test_task_without_an_answer_is_refused():
    with pytest.raises(ConfigError, match="t has no reference answer"):
        check_component_tasks(
            expo_self_explanation().sampler, [replace(TASK, reference_answer=None)]
        )
