"""RGR-GRPO: rubric rewards, and the best rollout revised towards its failed items."""

import asyncio
from dataclasses import dataclass, replace
from math import log

import pytest
import torch

from grupo.config.validate import check_component_tasks
from grupo.core.types import Response, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.rgr_grpo import rgr_grpo
from grupo.rewards import CheckedRubric
from grupo.rewards.judges import RubricColumn
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.errors import ConfigError

RUBRIC = [
    {"name": "sum", "criterion": "7", "weight": 3.0},
    {"name": "unit", "criterion": "m", "weight": 1.0},
    {"name": "way", "criterion": "+"},
]
TASK = Task("t", "q", columns={"rubric": RUBRIC})


def contains(criterion: str, text: str) -> bool:
    return criterion in text


REWARD = CheckedRubric(RubricColumn("rubric"), contains)


@dataclass(frozen=True)
class Writer:
    """Actor whose n-th plain answer is `answers[n]`, and `revised` is its revision."""

    answers: tuple
    revised: str
    prompts: list
    number: int = -1

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        text = self.answers[self.number] if prompt == "q" else self.revised
        return Response(("x",), (-1.0,), (prompt,), text)

    def with_prompt(self, rollout, prompt):
        ((_, response),) = rollout.turns
        return replace(rollout, turns=((prompt, replace(response, off_context=True)),))

    def fork(self, *label):
        return self if label == ("refined",) else replace(self, number=label[0])


def sample(answers, revised):
    prompts = []
    env = SingleTurn((RewardTerm("rubric", REWARD),))
    sampler = rgr_grpo(len(answers)).sampler
    return asyncio.run(sampler(TASK, env, Writer(answers, revised, prompts))), prompts


def test_rubric_of_weights_3_1_1_without_the_first_item():
    rollout = Rollout((("q", Response(("x",), (-1.0,), text="3 + 4 m")),))
    # (0 x 3 + 1 + 1) / 5
    assert REWARD.score(TASK, rollout) == {"score": 0.4, "sum": 0.0, "unit": 1.0, "way": 1.0}


def test_best_rollout_is_revised_towards_its_failed_items():
    group, prompts = sample(("3 + 4", "7 m", "?"), "3 + 4 = 7 m")
    (refine,) = prompts[3:]
    assert "An answer: 7 m" in refine  # 0.8 against 0.2 and 0
    assert refine.partition("It lacks:\n")[2].startswith("+\n")
    assert group.rewards == pytest.approx((0.2, 0.8, 1.0))  # the worst is replaced
    ((observation, response),) = group.rollouts[2].turns
    assert (observation, response.off_context) == ("q", True)
    assert group.rollouts[2].source == "refinement"


def test_a_revision_that_is_no_better_than_the_worst_rollout_is_dropped():
    group, prompts = sample(("7", "7 m"), "7")
    assert len(prompts) == 3
    assert [rollout.source for rollout in group.rollouts] == ["policy"] * 2


def test_a_group_in_which_one_rollout_meets_the_rubric_is_kept():
    assert len(sample(("3 + 4 = 7 m", "?"), "never")[1]) == 2


def test_unlikely_tokens_of_the_revision_have_the_largest_gradient():
    signals = {"off_context": [[1.0], [1.0], [0.0]]}
    batch = make_batch([0] * 3, advantage=[1.0, 1.0, 1.0], signals=signals)
    pi = perturb_logp(batch, [[0.0]] * 3)
    p = torch.tensor([[0.1], [0.9], [0.5]], dtype=torch.float64, requires_grad=True)
    pi["logp"] = p.log()
    loss = rgr_grpo().loss(pi, replace(batch, old_logp=torch.full((3, 1), log(0.5))))
    # f(0.1) = 0.5, f(0.9) = 0.9; the ratio of the third is 1
    assert loss[:, 0].tolist() == pytest.approx([-0.5, -0.9, -1.0])
    (slope,) = torch.autograd.grad(loss[:2].sum(), p)
    # 0.1 / (p + 0.1)^2
    assert slope[:2, 0].tolist() == pytest.approx([-2.5, -0.1])


def test_task_without_a_rubric_is_refused():
    with pytest.raises(ConfigError, match="column 'rubric'"):
        check_component_tasks(REWARD, [Task("t", "q")])
