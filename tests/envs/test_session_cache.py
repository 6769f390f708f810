"""Sessions of a world: made once for the same words, or played again where rollouts branch."""

import asyncio
import time
from dataclasses import replace

import pytest

from grupo.core.types import Rollout
from tests.helpers.scripted_play import TASK, Adding, Uncopied, adding, played, said


def test_rollouts_branch_from_any_prefix_and_do_not_disturb_each_other():
    async def work():
        env = adding()
        trunk = Rollout().append_turn("total 0", said("1"))
        assert await env.reply(TASK, trunk) == "total 1"
        branches = [trunk.append_turn("total 1", said(text)) for text in ("1", "5", "1")]
        replies = [await env.reply(TASK, branch) for branch in branches]
        assert await env.reply(TASK, trunk) == "total 1"
        return replies

    assert asyncio.run(work()) == ["total 2", "total 6", "total 2"]
    assert (Adding.opened, Adding.on_step_end) == (1, 3)  # nothing was played twice


def test_a_world_that_cannot_be_copied_is_played_again_where_rollouts_branch():
    played_once = played(adding(), ["1", "1", "1"], ["1", "1", "7", "-6"])
    again = played(adding(Uncopied), ["1", "1", "1"], ["1", "1", "7", "-6"])
    assert again == played_once
    # 1 1 1 in one session; the branch 7 finds it gone: 1 1 are played again, then 7, then -6
    assert (Uncopied.opened, Uncopied.on_step_end) == (2, 3 + 2 + 2)


def test_sessions_that_are_no_longer_kept_are_played_again(monkeypatch):
    monkeypatch.setattr("grupo.envs.session_cache.KEPT", 0)
    assert [r.reward for r in played(adding(), ["1", "1", "1"])] == [pytest.approx(1.03)]
    assert Adding.on_step_end == 1 + 2 + 3


class Fickle(Uncopied):
    """A world that never says the same."""

    def step(self, text):
        return f"{super().step(text)[0]} at {time.monotonic_ns()}", 0.0, False


def test_a_world_that_answers_otherwise_when_played_again_fails_by_name(monkeypatch):
    monkeypatch.setattr("grupo.envs.session_cache.KEPT", 0)
    (rollout,) = played(adding(Fickle), ["1", "1", "1"])
    assert "the same words were answered otherwise when played again" in rollout.error


def test_one_question_in_other_words_is_another_session():
    other = replace(TASK, prompt="Make 3!")

    async def work():
        env = adding()
        return await env.reply(TASK, Rollout()), await env.reply(other, Rollout())

    assert asyncio.run(work()) == ("total 0", "total 0")
    assert Adding.opened == 2
