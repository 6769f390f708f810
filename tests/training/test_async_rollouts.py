"""Generation ahead of the updates ends with the run."""

import asyncio
import threading
from concurrent.futures import CancelledError, Future

import pytest

from grupo.method import Method
from grupo.testing.smoke.echo_env import EchoEnv
from grupo.testing.smoke.run import echo_recipe
from grupo.training.callbacks import NullCallback
from grupo.training.collect.async_rollouts import AsyncRolloutQueue, GeneratedStep, GenerationState
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.start import run_training
from grupo.util.event_loop import run_coroutine


def async_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("async-rollouts", "loop"))]


def test_close_cancels_the_running_step_and_drops_later_ones():
    queue = AsyncRolloutQueue()
    begun = threading.Event()
    steps: list[str] = []

    async def wait_for_ever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cleaned up")

    def generate_step(start: GenerationState, stop: Future[None]) -> GeneratedStep:
        steps.append("begun")
        run_coroutine(wait_for_ever(), stop)
        return GeneratedStep(CollectedGroups((), ()), start.num_tasks_drawn, {})

    queue.submit(generate_step, GenerationState(0))
    queue.submit(generate_step, GenerationState(0))
    running, later = (queued.future for queued in queue.queued_steps)
    assert begun.wait(10)
    queue.close()
    assert steps == ["begun", "cleaned up"]
    assert isinstance(running.exception(), CancelledError | asyncio.CancelledError)
    assert later.cancelled()
    assert not queue.queued_steps
    assert async_threads() == []


def test_close_after_the_last_step_ends_the_thread():
    queue = AsyncRolloutQueue()
    step = GeneratedStep(CollectedGroups((), ()), 4, {})
    queue.submit(lambda start, stop: step, GenerationState(0))
    assert queue.pop() is step
    queue.close()
    assert async_threads() == []


class Interrupt(NullCallback):
    """Interrupts a run after its first step, once the second one is being scored."""

    def __init__(self, is_scoring: threading.Event) -> None:
        self.is_scoring = is_scoring

    def on_step_end(self, step, metrics):
        assert self.is_scoring.wait(10)
        raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_run_does_not_wait_for_rewards_of_later_steps(tmp_path, monkeypatch):
    is_scoring = threading.Event()
    score = EchoEnv.score

    async def score_first_step_only(env, task, rollouts):
        if len(scored) == 2:
            is_scoring.set()
            await asyncio.Event().wait()
        scored.append(task)
        return await score(env, task, rollouts)

    scored: list[object] = []
    monkeypatch.setattr(EchoEnv, "score", score_first_step_only)
    changes = {"prompts_per_step": 2, "max_staleness": 1, "eval_tasks": 0}
    with pytest.raises(KeyboardInterrupt):
        run_training(echo_recipe(Method()).replace(**changes), tmp_path, Interrupt(is_scoring))
    assert async_threads() == []
    assert len(scored) == 2
