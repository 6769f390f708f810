"""Cog-Rethinker: two stages for unsolved tasks, and the imitation of their correct answers."""

import asyncio
from dataclasses import dataclass, replace

import pytest
import torch

from grupo.core.types import Response, RewardResult, SolvedTask, Task
from grupo.methods.cog_rethinker import CORRECT, DECOMPOSE, cog_rethinker
from grupo.testing.batches import make_batch, perturb_logp
from grupo.util.rng import make_rng

SOLVED = SolvedTask("1 + 1 =", " 2")
STAGES = {"decompose": DECOMPOSE, "correct": CORRECT.format(attempt=" 0")}


@dataclass(frozen=True)
class Solver:
    """Actor that is right in the first `correct` rollouts of the prompts that end with `key`."""

    key: str
    correct: int
    prompts: list
    number: int = 0

    async def __call__(self, rollout, prompt):
        self.prompts.append(prompt)
        right = prompt.endswith(self.key) and self.number < self.correct
        return Response(("x",), (-1.0,), (prompt,), " 5" if right else " 0")

    async def append_unsampled(self, rollout, prompt, text):
        return Response(("y",), (0.0,), (prompt,), text, sampled=False)

    def fork(self, *label):
        return replace(self, number=label[-1])

    def rng(self, *label):
        return make_rng(0, *label)


class Sums:
    """Environment of one turn with reward 1 for " 5"."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float(rollout.text == " 5")) for rollout in rollouts]


def sample(key, correct, demonstrations=()):
    prompts = []
    task = Task("t", "2 + 3 =", "5", demonstrations=demonstrations)
    sampler = cog_rethinker(2).sampler
    return asyncio.run(sampler(task, Sums(), Solver(key, correct, prompts))), prompts


def test_only_the_unsolved_prompt_is_asked_again():
    # accuracies of the direct prompts: 0, 0.5 and 1
    groups = []
    for correct, asked in ((0, 6), (1, 2), (2, 2)):
        group, prompts = sample("=", correct)
        assert len(prompts) == asked
        groups.append(group)
    kept = cog_rethinker().filter(groups)
    assert kept == [groups[1]]  # the first is wrong in all stages, the third right everywhere


def test_stages_are_asked_in_order_with_solved_tasks_before_the_prompt():
    group, prompts = sample("never", 0, (SOLVED,))
    shown = "1 + 1 = 2\n\n2 + 3 ="
    assert prompts == [
        *["2 + 3 ="] * 2,
        *[shown + STAGES["decompose"]] * 2,
        *[shown + STAGES["correct"]] * 2,
    ]
    assert [rollout.source for rollout in group.rollouts] == ["corrected"] * 2


@pytest.mark.parametrize(("stage", "asked"), [("decompose", 4), ("correct", 6)])
def test_correct_answers_of_a_stage_are_recited_behind_the_plain_prompt(stage, asked):
    group, prompts = sample(STAGES[stage], 1)
    assert len(prompts) == asked
    assert group.rewards == (1.0, 0.0, 1.0)
    *own, copy = group.rollouts
    assert {r.turns[0][0] for r in own} == {"2 + 3 =" + STAGES[stage]}
    ((observation, response),) = copy.turns
    assert (observation, response.text, response.sampled) == ("2 + 3 =", " 5", False)


def test_solved_stage_is_kept_for_its_imitation():
    group, _ = sample(STAGES["decompose"], 2)
    assert group.rewards == (1.0,) * 4
    assert cog_rethinker().filter([group]) == [group]


def test_copies_add_a_tenth_of_the_mean_likelihood_and_no_advantage():
    method = cog_rethinker(2)
    sampled = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}
    batch = make_batch([0] * 3, reward=[1.0, 0.0, 1.0], length=[1, 1, 2], signals=sampled)
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0]] * 3)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    A = 0.5 / (0.5**0.5 + 1e-6)  # of the two sampled rollouts alone
    assert gradient[:2, 0].tolist() == pytest.approx([-A / 2, A / 2])
    assert gradient[2].tolist() == pytest.approx([-0.05, -0.05])  # 0.1 / 2 tokens


def test_demonstrations_are_declared():
    assert cog_rethinker(num_demonstrations=3).requires.demonstrations == 3
