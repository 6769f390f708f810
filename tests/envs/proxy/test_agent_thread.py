"""Functions that do not end with their rollouts: coroutines are cancelled, threads counted."""

import asyncio
import logging
import threading

import pytest

from grupo.core.types import Task
from grupo.envs import RewardTerm
from grupo.envs.proxy import ProxyEnv, agent_thread
from grupo.util.limits import Limit
from tests.helpers import agents
from tests.helpers.scripted_play import play

TASK = Task("key", "Which number?", 3)
LENGTH = RewardTerm("length", lambda task, rollout: float(rollout.length))
SECONDS = 20.0


@pytest.fixture(autouse=True)
def counted_at_once(monkeypatch):
    """A function that goes on counts at once, and the warning has not been given."""
    monkeypatch.setattr(agent_thread, "END_SECONDS", 0.0)
    monkeypatch.setattr(agent_thread, "LEFT_THREADS", Limit("", 2, "functions", ""))
    agent_thread._warn_of_left_threads.cache_clear()


def becomes_true(condition):
    for _ in range(200):
        if condition():
            return True
        threading.Event().wait(0.05)
    return False


def play_one(harness, *texts, **fields):
    (rollout,) = play(ProxyEnv(harness, (LENGTH,), **fields), texts, task=TASK)
    return rollout


@pytest.fixture
def hanging():
    """A function that hangs until the test ends."""
    gate, at_work = threading.Event(), []

    def harness(task, address):
        at_work.append(threading.current_thread())
        gate.wait(SECONDS)
        at_work.pop()

    yield harness
    gate.set()
    assert becomes_true(lambda: not at_work and not agent_thread.num_left())


def test_a_coroutine_that_hangs_is_cancelled():
    ended = threading.Event()

    async def harness(task, address):
        try:
            await asyncio.sleep(SECONDS)
        finally:
            ended.set()

    rollout = play_one(harness, "x", time_limit=0.5)
    assert "neither called the policy nor ended within 0.5 s" in rollout.error
    assert ended.wait(SECONDS / 4)
    assert becomes_true(lambda: not agent_thread.num_left())


def test_functions_that_go_on_are_counted_said_once_and_limited(hanging, caplog):
    with caplog.at_level(logging.WARNING):
        errors = [play_one(hanging, "x", time_limit=0.3).error for _ in range(3)]
    assert ["neither called" in error for error in errors] == [True, True, False]
    assert "was not started: 2 functions of earlier agents go on in their threads" in errors[2]
    assert "Allowed: at most 2 functions" in errors[2]
    warnings = [message for message in caplog.messages if "has not ended" in message]
    assert len(warnings) == 1
    assert agent_thread.num_left() == 2


def test_a_reward_term_counts_the_functions_that_go_on(hanging):
    play_one(hanging, "x", time_limit=0.3)
    assert play_one(agents.ask_once, "7").reward_terms["left_threads"] == 1.0


def test_the_calls_of_a_function_that_goes_on_are_refused():
    refusals, gate = [], threading.Event()

    def harness(task, address):
        gate.wait(SECONDS)
        try:
            agents.ask(address, [agents.user("late")])
        except agents.openai.APIStatusError as error:
            refusals.append((error.status_code, error.body["code"]))

    assert "neither called" in play_one(harness, "x", time_limit=0.3).error
    gate.set()
    assert becomes_true(lambda: refusals)
    assert refusals in ([(410, "rollout_over")], [(401, "invalid_api_key")])


def test_a_rollout_that_is_cut_leaves_no_function_behind():
    rollout = play_one(agents.loop_for_ever, *"abc", max_calls=2)
    assert rollout.reward_terms["call_limit"] == 1.0
    assert becomes_true(lambda: not agent_thread.num_left())
