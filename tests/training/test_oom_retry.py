"""Work that lacks memory is begun again in halves, as if it had never been begun."""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf

import numpy as np
import pytest
import torch
from torch import Tensor

from grupo.algo.losses import Clip
from grupo.config.overrides import apply_overrides
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.tasks import FromFunction
from grupo.training.learner import Learner
from grupo.training.oom_retry import retry_on_oom
from grupo.training.update import accumulate_gradients
from tests.helpers import tiny_lm
from tests.helpers.conversations import shuffled


class Worker:
    """Works in pieces of some size; larger ones than it `bears` fail."""

    def __init__(self, size: int, bears: int, fail: Callable[[], object]) -> None:
        self.size, self.bears, self.fail = size, bears, fail
        self.done, self.undone, self.said = list[int](), list[int](), list[str]()

    def work(self) -> str:
        self.done.append(self.size)
        if self.size > self.bears:
            self.fail()
        return f"done by {self.size}"

    def halve(self) -> str:
        self.size //= 2
        return f"by {self.size}" if self.size else ""

    def __call__(self) -> str:
        return retry_on_oom(
            self.work, self, lambda: self.undone.append(self.size), self.said.append
        )


def lack(error: Exception) -> None:
    raise error


LACKS: dict[str, Callable[[], object]] = {
    "a device's": partial(lack, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")),
    "torch's for processors": lambda: torch.empty(1 << 60, dtype=torch.uint8),
    "Python's": partial(lack, MemoryError()),
    "numpy's": lambda: np.empty(1 << 60, dtype=np.uint8),
    "an older torch's": partial(
        lack, RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes")
    ),
    "a library's": partial(lack, RuntimeError("std::bad_alloc: Cannot allocate memory")),
}


@pytest.mark.parametrize("fail", LACKS.values(), ids=LACKS)
def test_it_is_done_again_in_halves_until_they_are_small_enough(fail):
    worker = Worker(100, 30, fail)
    assert worker() == "done by 25"
    assert worker.done == [100, 50, 25]
    assert worker.undone == [50, 25]
    assert worker.said == ["by 50", "by 25"]


def test_what_does_not_fail_is_done_once():
    worker = Worker(100, 100, LACKS["Python's"])
    assert (worker(), worker.done, worker.undone, worker.said) == ("done by 100", [100], [], [])


@pytest.mark.parametrize("fail", LACKS.values(), ids=LACKS)
def test_what_cannot_be_halved_any_more_fails_as_it_did(fail):
    worker = Worker(4, 0, fail)
    with pytest.raises((MemoryError, RuntimeError)):
        worker()
    assert worker.done == [4, 2, 1]
    assert worker.said == ["by 2", "by 1"]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("shapes cannot be multiplied"), ValueError("memory"), KeyError("out of memory")],
    ids=repr,
)
def test_other_errors_pass_through(error):
    worker = Worker(100, 30, partial(lack, error))
    with pytest.raises(type(error)) as raised:
        worker()
    assert raised.value is error
    assert (worker.done, worker.undone, worker.said) == ([100], [], [])


def test_an_error_after_a_lack_of_memory_passes_through():
    fails = iter([LACKS["Python's"], partial(lack, ValueError("no number"))])
    worker = Worker(100, 0, lambda: next(fails)())
    with pytest.raises(ValueError, match="no number"):
        worker()
    assert worker.undone == [50]


def vowels(task: Task, rollout: Rollout) -> float:
    return sum(letter in "aeiou" for letter in rollout.text)


def tasks() -> Iterator[Task]:
    yield from (Task(str(i), f"Question {i}: " + letter * 20) for i, letter in enumerate("ABCD"))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Of four groups a step."""
    folder = tiny_lm.plant(tmp_path_factory.mktemp("llama"))
    world, source = SingleTurn((RewardTerm("vowels", vowels),)), FromFunction(tasks)
    policy = CausalLM(str(folder), max_new_tokens=8, tokens_per_microbatch=128)
    numbers = {"steps": 2, "prompts": 4, "lr": 1e-3, "tolerance": inf}  # only updates read rows
    return Recipe(policy, world, source, eval_tasks=0, **numbers)


def failing(learner: Learner, bears: int, at: int = 3) -> list[int]:
    """Have memory fail at the end of a micro-batch's backward while they are too large."""
    budgets = list[int]()

    def fail(gradient: Tensor) -> None:
        budgets.append(learner.policy.tokens_per_microbatch)
        if (
            learner.policy.tokens_per_microbatch > bears
            and budgets.count(learner.policy.tokens_per_microbatch) == at
        ):
            raise torch.OutOfMemoryError("out of memory")

    embedding = learner.policy.plain.get_input_embeddings()
    embedding.weight.register_hook(fail)  # its gradient is the last that is worked out
    return budgets


def said(budget: int) -> str:
    return f"Out of memory: micro-batches hold {budget} tokens from now on."


def test_a_gradient_that_is_begun_again_is_that_of_a_policy_that_never_failed(recipe):
    prompts = [letter * 20 for letter in "ABCDEFGH"]
    learners = [Learner(recipe), Learner(recipe)]
    batch, _ = shuffled(learners[0].policy, prompts, 4)
    batch = batch.with_advantage(lambda x, _: torch.linspace(-1, 1, len(x)).to(x))
    budgets = failing(learners[1], bears=32)
    for learner in learners:
        learner._retry_on_oom(
            partial(accumulate_gradients, learner.policy, Method(loss=Clip()), batch)
        )
    assert budgets[:6] == [128] * 3 + [64] * 3
    assert budgets.count(32) == len(budgets) - 6 >= 8
    assert learners[1].notes == [said(64), said(32)]
    for whole, again in zip(*(x.policy.parameters() for x in learners), strict=True):
        assert (whole.grad - again.grad).abs().max() < 1e-5 * whole.grad.abs().max()


def test_a_step_that_is_begun_again_is_the_step_of_smaller_pieces_bit_for_bit(recipe):
    small, failed = (
        Learner(apply_overrides(recipe, [("policy.tokens_per_microbatch", "64")])),
        Learner(recipe),
    )
    budgets = failing(failed, bears=64, at=2)
    notes = [learner.step().notes for learner in (small, failed)]
    assert budgets.count(128) == 2
    assert notes == [(), (said(64),)]
    for name, x in failed.policy.weights().items():
        assert torch.equal(x, small.policy.weights()[name])
    assert failed.state.data()["budget"] == 64


def test_where_one_row_alone_does_not_fit_nothing_is_halved_in_vain(recipe):
    learner = Learner(recipe)
    batch, _ = shuffled(learner.policy, [letter * 20 for letter in "ABCD"], 4)
    budgets = failing(learner, bears=0, at=1)
    with pytest.raises(torch.OutOfMemoryError):
        learner._retry_on_oom(
            partial(accumulate_gradients, learner.policy, Method(loss=Clip()), batch)
        )
    rows = learner.policy.evaluator.together(*(batch.inputs[n] for n in ("token", "length")), 16)
    assert {len(row) for row in rows} == {1}
    assert min(budgets) >= 8  # about a row: not 4, 2, 1, 0
