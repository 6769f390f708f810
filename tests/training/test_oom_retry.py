"""Work that runs out of memory is repeated in half the micro-batch, without a trace."""

import weakref
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
from grupo.training.resume.saved_state import state_data
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.oom_retry import retry_on_oom
from tests.helpers import tiny_lm
from tests.helpers.conversations import shuffled_batch


class Worker:
    """Works in micro-batches of some size; those larger than `limit` fail."""

    def __init__(self, size: int, limit: int, fail: Callable[[], object]) -> None:
        self.size, self.limit, self.fail = size, limit, fail
        self.attempts, self.resets, self.messages = list[int](), list[int](), list[str]()
        self.released, self.tensor_of_work = list[bool](), weakref.ref(Worker)

    def work(self) -> str:
        self.attempts.append(self.size)
        tensor = torch.zeros(1)
        self.tensor_of_work = weakref.ref(tensor)
        if self.size > self.limit:
            self.fail()
        return f"done by {self.size}"

    def halve_microbatch(self) -> str:
        self.size //= 2
        return f"by {self.size}" if self.size else ""

    def release_memory(self) -> None:
        self.released.append(self.tensor_of_work() is None)

    def __call__(self) -> str:
        return retry_on_oom(
            self.work, self, lambda: self.resets.append(self.size), self.messages.append
        )


def raise_error(error: Exception) -> None:
    raise error


ERRORS: dict[str, Callable[[], object]] = {
    "CUDA": partial(raise_error, torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")),
    "torch on a CPU": lambda: torch.empty(1 << 60, dtype=torch.uint8),
    "Python": partial(raise_error, MemoryError()),
    "numpy": lambda: np.empty(1 << 60, dtype=np.uint8),
    "an older torch": partial(
        raise_error,
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"),
    ),
    "a C++ library": partial(raise_error, RuntimeError("std::bad_alloc: Cannot allocate memory")),
}


@pytest.mark.parametrize("fail", ERRORS.values(), ids=ERRORS)
def test_work_is_repeated_with_half_the_size_until_it_fits(fail):
    worker = Worker(100, 30, fail)
    assert worker() == "done by 25"
    assert worker.attempts == [100, 50, 25]
    assert worker.resets == [50, 25]
    assert worker.messages == ["by 50", "by 25"]


def test_memory_is_released_after_the_tensors_of_the_failed_work_are_gone():
    worker = Worker(100, 30, ERRORS["torch on a CPU"])
    worker()
    assert worker.released == [True, True]


def test_work_that_fits_runs_once():
    worker = Worker(100, 100, ERRORS["Python"])
    assert (worker(), worker.attempts, worker.resets, worker.messages) == (
        "done by 100",
        [100],
        [],
        [],
    )


@pytest.mark.parametrize("fail", ERRORS.values(), ids=ERRORS)
def test_the_smallest_size_raises_the_original_error(fail):
    worker = Worker(4, 0, fail)
    with pytest.raises((MemoryError, RuntimeError)):
        worker()
    assert worker.attempts == [4, 2, 1]
    assert worker.messages == ["by 2", "by 1"]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("shapes cannot be multiplied"), ValueError("memory"), KeyError("out of memory")],
    ids=repr,
)
def test_other_errors_pass_through(error):
    worker = Worker(100, 30, partial(raise_error, error))
    with pytest.raises(type(error)) as raised:
        worker()
    assert raised.value is error
    assert (worker.attempts, worker.resets, worker.messages) == ([100], [], [])


def test_an_error_after_an_oom_retry_passes_through():
    fails = iter([ERRORS["Python"], partial(raise_error, ValueError("no number"))])
    worker = Worker(100, 0, lambda: next(fails)())
    with pytest.raises(ValueError, match="no number"):
        worker()
    assert worker.resets == [50]


def vowels(task: Task, rollout: Rollout) -> float:
    return sum(letter in "aeiou" for letter in rollout.text)


def tasks() -> Iterator[Task]:
    yield from (Task(str(i), f"Question {i}: " + letter * 20) for i, letter in enumerate("ABCD"))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """A recipe with four groups per step."""
    folder = tiny_lm.save_model(tmp_path_factory.mktemp("llama"))
    env, source = SingleTurn((RewardTerm("vowels", vowels),)), FromFunction(tasks)
    policy = CausalLM(str(folder), max_new_tokens=8, tokens_per_microbatch=128)
    return Recipe(
        policy,
        env,
        source,
        eval_tasks=0,
        max_steps=2,
        prompts_per_step=4,
        learning_rate=1e-3,
        old_logp_tolerance=inf,  # log-probs are not recomputed: only updates evaluate rows
    )


def fail_above(learner: Learner, limit: int, at: int = 3) -> list[int]:
    """Raise out-of-memory errors in the backward pass while micro-batches exceed `limit`.

    The error is raised in the `at`-th micro-batch of a size. Returns the list in which the size of
    each micro-batch is recorded.
    """
    sizes = list[int]()

    def fail(gradient: Tensor) -> None:
        size = learner.policy.tokens_per_microbatch
        sizes.append(size)
        if size > limit and sizes.count(size) == at:
            raise torch.OutOfMemoryError("out of memory")

    embedding = learner.policy.hf_model.get_input_embeddings()
    embedding.weight.register_hook(fail)  # its gradient is computed last
    return sizes


def oom_message(size: int) -> str:
    return f"Out of memory: micro-batches hold {size} tokens from now on."


@pytest.mark.slow
def test_a_gradient_after_oom_retries_equals_that_without_failures(recipe):
    prompts = [letter * 20 for letter in "ABCDEFGH"]
    learners = [Learner(recipe), Learner(recipe)]
    batch, _ = shuffled_batch(learners[0].policy, prompts, 4)
    batch = batch.with_advantage(lambda x, _: torch.linspace(-1, 1, len(x)).to(x))
    sizes = fail_above(learners[1], limit=32)
    for learner in learners:
        learner._retry_on_oom(
            partial(accumulate_gradients, learner.policy, Method(loss=Clip()), batch)
        )
    assert sizes[:6] == [128] * 3 + [64] * 3
    assert sizes.count(32) == len(sizes) - 6 >= 8
    assert learners[1].step_messages == [oom_message(64), oom_message(32)]
    for expected, actual in zip(*(x.policy.parameters() for x in learners), strict=True):
        difference = (expected.grad - actual.grad).abs().max()
        assert difference < 1e-5 * expected.grad.abs().max()


@pytest.mark.slow
def test_a_step_after_an_oom_retry_is_bitwise_that_of_smaller_microbatches(recipe):
    small, failed = (
        Learner(apply_overrides(recipe, [("policy.tokens_per_microbatch", "64")])),
        Learner(recipe),
    )
    sizes = fail_above(failed, limit=64, at=2)
    messages = [learner.step().messages for learner in (small, failed)]
    assert sizes.count(128) == 2
    assert messages == [(), (oom_message(64),)]
    for name, x in failed.policy.weights().items():
        assert torch.equal(x, small.policy.weights()[name])
    assert state_data(failed.state)["tokens_per_microbatch"] == 64


@pytest.mark.slow
def test_microbatches_of_one_row_are_not_halved_further(recipe):
    learner = Learner(recipe)
    batch, _ = shuffled_batch(learner.policy, [letter * 20 for letter in "ABCD"], 4)
    sizes = fail_above(learner, limit=0, at=1)
    with pytest.raises(torch.OutOfMemoryError):
        learner._retry_on_oom(
            partial(accumulate_gradients, learner.policy, Method(loss=Clip()), batch)
        )
    rows = learner.policy.evaluator.microbatches(
        *(batch.inputs[n] for n in ("token", "length")), 16
    )
    assert {len(row) for row in rows} == {1}
    assert min(sizes) >= 8  # about one row; not 4, 2, 1, 0
