"""AMPO: solutions in failing groups, chosen by how likely they make the answer."""

import asyncio
from dataclasses import dataclass, replace
from math import log

import pytest

from grupo.core.interfaces import TokenLogprobs
from grupo.core.types import Response, RewardResult, Task
from grupo.methods.ampo import ampo
from grupo.rollouts.samplers import ComprehendedSolutions
from grupo.rollouts.samplers.comprehended_solutions import comprehension
from grupo.testing.batches import make_batch, perturb_logp

# probability of each token of the answer "42" behind the reasoning of each teacher
PROBABILITIES = {"by tens: ": (0.2, 0.4), "by pairs: ": (0.6, 0.9), "no room: ": ()}
COLUMNS = {"tens": "by tens: 42", "pairs": "by pairs: 42", "long": "no room: 42"}
TASK = Task("t", "6 * 7 =", "42", columns=COLUMNS)
EMPTY = ((), ())


@dataclass(frozen=True)
class Student:
    """Actor that answers `text` and knows the probabilities of the answer."""

    text: str

    async def __call__(self, rollout, prompt):
        return Response(("x",), (-0.5,), (prompt,), self.text)

    async def prefill_forced(self, rollout, prompt, text):
        return Response(tuple(text), (), (), text, sampled=False, in_loss=False)

    async def append_unsampled(self, rollout, prompt, text):
        return Response(("y",), (0.0,), (prompt,), text, sampled=False)

    async def logprobs(self, rollout):
        (_, reasoning), (_, answer) = rollout.turns
        assert answer.text == "42"
        return TokenLogprobs(tuple(map(log, PROBABILITIES[reasoning.text])))

    def fork(self, *label):
        return self


class Verifier:
    """Environment of one turn with reward 1 for a text that ends with the answer."""

    async def reply(self, task, rollout):
        return None if rollout.turns else task.prompt

    async def score(self, task, rollouts):
        return [RewardResult(float(r.text.endswith("42"))) for r in rollouts]


def sample(text="41", **arguments):
    method = ampo(64, columns=("tens", "pairs", "long"), **arguments)
    return asyncio.run(method.sampler(TASK, Verifier(), Student(text)))


def test_solution_that_makes_the_answer_likelier_is_chosen():
    # means: tens 0.3, pairs 0.75, long 0
    group = sample(num_solutions=1)
    assert group.rollouts[-1].text == "by pairs: 42"
    assert [r.source for r in group.rollouts] == ["policy"] * 7 + ["expert"]
    assert [r.text for r in sample().rollouts[-2:]] == ["by pairs: 42", "by tens: 42"]
    assert sample().rewards == (0.0,) * 6 + (1.0, 1.0)
    assert not sample().rollouts[-1].turns[0][1].sampled


def test_one_correct_rollout_keeps_all_solutions_away():
    assert {r.source for r in sample(text="42").rollouts} == {"policy"}


def test_task_without_solutions_keeps_its_group():
    bare = Task("t", "6 * 7 =", "42")
    group = asyncio.run(ampo(64).sampler(bare, Verifier(), Student("41")))
    assert group.rewards == (0.0,) * 8
    assert ComprehendedSolutions(("tens", "pairs")).requires.columns == {"tens", "pairs"}


@pytest.mark.parametrize("answer", ["", "  "])
def test_no_solution_is_comprehended_where_the_answer_is_empty(answer):
    task = replace(TASK, reference_answer=answer)
    assert asyncio.run(comprehension(task, "by tens: 42", Verifier(), Student("41"))) == 0.0


def test_two_solutions_among_eight_have_advantage_three_quarters():
    method = ampo(max_length=4, entropy_coef=0.0)
    sampled = {"sampled": [[1.0]] * 6 + [[0.0]] * 2}
    batch = make_batch([0] * 8, reward=[0.0] * 6 + [1.0] * 2, signals=sampled)
    batch = batch.with_advantage(method.advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([-0.25] * 6 + [0.75] * 2)
    pi = perturb_logp(batch, [[0.0]] * 8)
    pi["logp"] = pi.logp.new_tensor([[0.0]] * 6 + [[log(0.5)], [log(0.05)]])
    pi["entropy"] = pi.logp * 0
    loss = method.loss(pi, batch)[:, 0].tolist()
    # f(0.5) = 0.5 / 0.6 = 0.8333, f(0.05) = 0.05 / 0.15 = 0.3333
    assert loss[6:] == pytest.approx([-0.75 * 5 / 6, -0.75 / 3])
    # the weight of a token: 1 / (8 rollouts x max_length 4)
    assert method.aggregation(batch)[:, 0].tolist() == pytest.approx([1 / 32] * 8)


def test_ratio_above_10_counts_as_10_where_the_advantage_is_negative():
    batch = make_batch([0], advantage=[-1.0], signals={"sampled": [[1.0]]})
    pi = perturb_logp(batch, [[log(12.0)]])
    pi["entropy"] = pi.logp * 0
    assert ampo(4).loss(pi, batch).item() == pytest.approx(10.0)
