"""Sessions of an environment: computed once per sequence of texts, copied or replayed to branch."""

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from grupo.core.types import Rollout
from tests.helpers.scripted_play import TASK, SumGame, UncopyableSumGame, play, response, sum_env


def test_rollouts_branch_from_any_prefix_without_affecting_each_other():
    async def work():
        env = sum_env().open()
        trunk = Rollout().append_turn("total 0", response("1"))
        assert await env.reply(TASK, trunk) == "total 1"
        branches = [trunk.append_turn("total 1", response(text)) for text in ("1", "5", "1")]
        replies = [await env.reply(TASK, branch) for branch in branches]
        assert await env.reply(TASK, trunk) == "total 1"
        return replies

    assert asyncio.run(work()) == ["total 2", "total 6", "total 2"]
    assert (SumGame.resets, SumGame.steps) == (1, 3)  # no step is repeated


def test_an_environment_that_cannot_be_copied_is_replayed_at_branches():
    texts = ["1", "1", "1"], ["1", "1", "7", "-6"]
    copied = play(sum_env(), *texts)
    replayed = play(sum_env(UncopyableSumGame), *texts)
    assert replayed == copied
    # 1 1 1 in one session; the branch 7 finds it used up: 1 1 are replayed, then 7, then -6
    assert (UncopyableSumGame.resets, UncopyableSumGame.steps) == (2, 3 + 2 + 2)


def test_evicted_sessions_are_replayed(monkeypatch):
    monkeypatch.setattr("grupo.envs.session_cache.MAX_CACHED_ENVS", 0)
    assert [r.reward for r in play(sum_env(), ["1", "1", "1"])] == [pytest.approx(1.03)]
    assert SumGame.steps == 1 + 2 + 3


class NondeterministicGame(UncopyableSumGame):
    """A game whose observations never repeat."""

    def step(self, text):
        return f"{super().step(text)[0]} at {time.monotonic_ns()}", 0.0, False


def test_a_replay_with_other_results_fails_the_rollout(monkeypatch):
    monkeypatch.setattr("grupo.envs.session_cache.MAX_CACHED_ENVS", 0)
    (rollout,) = play(sum_env(NondeterministicGame), ["1", "1", "1"])
    assert "replaying the same texts gave other results" in rollout.error


@pytest.mark.parametrize("cancelled", [0, 1])
def test_a_cancelled_caller_does_not_affect_others_for_the_same_state(cancelled):
    class SlowGame(SumGame):
        def reset(self, task):
            assert released.wait(10)
            return super().reset(task)

    async def work() -> str | None:
        env = sum_env(SlowGame).open()
        calls = [asyncio.create_task(env.reply(TASK, Rollout())) for _ in range(2)]
        await asyncio.sleep(0.01)
        calls[cancelled].cancel()
        await asyncio.sleep(0)
        released.set()
        return await calls[1 - cancelled]

    released = threading.Event()
    assert asyncio.run(work()) == "total 0"
    assert SlowGame.resets == 1


def test_a_state_whose_computation_failed_is_computed_again(monkeypatch):
    async def work() -> str | None:
        env = sum_env().open()
        with monkeypatch.context() as patch:
            patch.setattr("grupo.envs.session_steps.call_with_timeout", no_thread)
            with pytest.raises(RuntimeError, match="no thread"):
                await env.reply(TASK, Rollout())
        return await env.reply(TASK, Rollout())

    async def no_thread(*_) -> None:
        raise RuntimeError("no thread")

    assert asyncio.run(work()) == "total 0"


def test_a_task_with_another_prompt_has_a_session_of_its_own():
    other = replace(TASK, prompt="Make 3!")

    async def work():
        env = sum_env().open()
        return await env.reply(TASK, Rollout()), await env.reply(other, Rollout())

    assert asyncio.run(work()) == ("total 0", "total 0")
    assert SumGame.resets == 2
