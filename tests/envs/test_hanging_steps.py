"""A step that hangs because of the policy's answer earns 0; any other hang fails the rollout."""

import subprocess
import sys
import time
from threading import Event

import pytest

from grupo.envs import FallbackReward, raise_error
from grupo.envs.on_failure import RewardError
from tests.helpers.paths import ROOT
from tests.helpers.scripted_play import SumGame, UncopyableSumGame, play, sum_env

LIMIT = 0.1


@pytest.mark.parametrize("game", [SumGame, UncopyableSumGame])
def test_an_answer_that_makes_the_environment_hang_earns_nothing_and_is_counted(game):
    good, bad = play(sum_env(game, time_limit=LIMIT), ["1", "2"], ["1", "hang"])
    assert (good.error, good.reward) == ("", pytest.approx(1.02))
    assert (bad.error, bad.reward) == ("", pytest.approx(0.01))  # of the step before
    terms = {"answer_error": 1.0, "done": 1.0, "turns": 2.0}
    assert {name: bad.reward_terms[name] for name in terms} == terms
    assert bad.step_values["reward"] == pytest.approx((0.01, 0, 0, 0, 0))


def test_the_reward_of_an_answer_that_hangs_can_be_that_of_a_lost_episode():
    (bad,) = play(sum_env(time_limit=LIMIT, answer_error_reward=-1.0), ["hang"])
    assert bad.reward == -1.0


def test_an_answer_error_is_no_failure():
    for handler in (raise_error, FallbackReward(-9.0)):
        (bad,) = play(sum_env(time_limit=LIMIT, on_failure=handler), ["hang"])
        assert (bad.error, bad.reward) == ("", 0.0)


class HangsOnce(SumGame):
    """A game whose first step hangs, whatever the text."""

    def step(self, text):
        result = super().step(text)
        if HangsOnce.steps == 1:
            time.sleep(4 * LIMIT)
        return result


def test_a_step_that_does_not_hang_again_has_its_result():
    (rollout,) = play(sum_env(HangsOnce, time_limit=LIMIT), ["3"])
    assert (rollout.error, rollout.reward) == ("", pytest.approx(1.01))
    assert "answer_error" not in rollout.reward_terms


class Breaks(SumGame):
    """A game of which nothing works any more once a step hangs, such as a server that has died."""

    broken = Event()

    def reset(self, task):
        if Breaks.broken.is_set():
            time.sleep(4 * LIMIT)
        return super().reset(task)

    def step(self, text):
        if text == "hang":
            Breaks.broken.set()
        return super().step(text)


def test_an_environment_that_hangs_without_the_answer_too_fails_the_rollout():
    Breaks.broken.clear()
    (bad,) = play(sum_env(Breaks, time_limit=LIMIT), ["hang"])
    expected = f"task key, rollout 0: the environment did not return within {LIMIT} s at turn 1"
    assert bad.error == expected
    Breaks.broken.clear()
    with pytest.raises(RewardError, match="did not return"):
        play(sum_env(Breaks, time_limit=LIMIT, on_failure=raise_error), ["hang"])


class HangsInReset(SumGame):
    def reset(self, task):
        time.sleep(4 * LIMIT)
        return "late"


def test_a_reset_that_hangs_is_a_failure_of_the_environment():
    (bad,) = play(sum_env(HangsInReset, time_limit=LIMIT), ["1"])
    assert bad.error.endswith(f"the environment did not return within {LIMIT} s at turn 0")
    assert "answer_error" not in bad.reward_terms


class Recurses(SumGame):
    def step(self, text):
        return self.step(text) if text == "deep" else super().step(text)


def test_an_answer_that_recurses_too_deep_is_an_answer_error():
    (bad,) = play(sum_env(Recurses), ["deep"])
    assert (bad.error, bad.reward_terms["answer_error"]) == ("", 1.0)


PROGRAM = """
import time
from grupo.envs import MultiTurn
from tests.helpers.scripted_play import play
class Forever:
    def reset(self, task):
        return "on"
    def step(self, text):
        time.sleep(3600)
print(play(MultiTurn(Forever, time_limit=0.05), ["x"])[0].reward_terms["answer_error"])
"""


@pytest.mark.slow
def test_a_thread_that_hangs_does_not_keep_the_process_from_ending():
    """A process of its own, whose imports take seconds: no thread of this one may end with it."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "1.0\n"), ended.stderr


class Connected(UncopyableSumGame):
    """A game that holds a connection."""

    open_sessions = 0

    def reset(self, task):
        Connected.open_sessions += 1
        return super().reset(task)

    def close(self):
        Connected.open_sessions -= 1


@pytest.mark.parametrize("texts", [["3"], ["1", "1"], ["two"], ["hang"]])
def test_a_session_is_closed_when_its_rollout_is_over(texts):
    """It is done, has no turns left, raises, or hangs."""
    Connected.open_sessions = 0
    rollouts = play(sum_env(Connected, time_limit=LIMIT, max_turns=2), texts, ["1", "2"])
    assert len(rollouts) == 2
    deadline = time.monotonic() + 10.0
    while Connected.open_sessions and time.monotonic() < deadline:
        time.sleep(0.001)  # sessions are closed in another thread
    assert Connected.open_sessions == 0
