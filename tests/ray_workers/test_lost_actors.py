"""Actors that are killed, hang or kill themselves: a lost call is repeated, no rollout is lost."""

import asyncio
import json
import os
import signal
import threading
import time

import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

from grupo.core.interfaces import open_env
from grupo.core.types import Rollout, Task
from grupo.envs import FallbackReward, MultiTurn, RewardTerm, SingleTurn
from grupo.ray_workers import OnRay
from grupo.recipe import Evaluation
from grupo.training.collect.failed_rollouts import UnscoredStepError
from grupo.training.start import run_training
from tests.helpers.ray_envs import (
    DeadlyAnswers,
    DeadlyGames,
    DeadlyReward,
    HangingReward,
    SlowReward,
    num_deaths,
    processes,
)
from tests.helpers.run_outcomes import outcome
from tests.helpers.scripted_play import play, response
from tests.helpers.training_components import LetterGame, fine, save_models
from tests.helpers.training_recipes import base

CPUS = 0.5
FINE = SingleTurn((RewardTerm("part", fine),))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_models(folder)
    return str(folder)


def placed(env, **fields):
    return OnRay(env, workers=2, cpus=CPUS, **fields)


def scored_by(reward, **fields):
    return SingleTurn((RewardTerm("part", reward),), **fields)


def run_of(model, env, folder, **changes):
    """The outcome of two steps in this environment."""
    fields = {"max_steps": 2, "eval_tasks": 0, "evaluation": Evaluation(), **changes}
    run_training(base(model).replace(env=env, **fields), folder)
    return outcome(folder)


def assert_same_rollouts_and_weights(run, expected):
    for part in ("rollouts", "responses", "weights", "optimizer"):
        assert run[part] == expected[part], part


def lost_calls(run):
    return sum(dict(metrics).get("usage/env_calls_lost", 0) for metrics in run["metrics"])


def test_a_process_that_ends_while_it_scores_costs_one_repeated_call(model, tmp_path):
    run = run_of(model, placed(scored_by(DeadlyReward(str(tmp_path)))), tmp_path / "ray")
    assert (num_deaths(tmp_path), lost_calls(run)) == (1, 1)
    assert_same_rollouts_and_weights(run, run_of(model, FINE, tmp_path / "local"))


def test_a_process_that_ends_while_it_replies_costs_repeated_calls(model, tmp_path):
    env = MultiTurn(DeadlyGames(str(tmp_path)), max_turns=3)
    run = run_of(model, placed(env), tmp_path / "ray")
    assert num_deaths(tmp_path) == 1
    assert lost_calls(run) >= 1  # and calls of other rollouts that the process worked on
    local = run_of(model, MultiTurn(LetterGame, max_turns=3), tmp_path / "local")
    assert_same_rollouts_and_weights(run, local)


def test_a_process_that_is_killed_from_outside_costs_a_repeated_call(model, tmp_path):
    def kill_first():
        while not (running := processes(tmp_path)):
            time.sleep(0.02)
        os.kill(min(running), signal.SIGKILL)

    killer = threading.Thread(target=kill_first)
    killer.start()
    run = run_of(model, placed(scored_by(SlowReward(str(tmp_path)))), tmp_path / "ray")
    killer.join()
    assert lost_calls(run) == 1
    expected = run_of(model, FINE, tmp_path / "local")
    assert_same_rollouts_and_weights(run, expected)


def test_an_actor_that_does_not_answer_in_time_is_replaced(model, tmp_path):
    env = placed(scored_by(HangingReward(str(tmp_path))), time_limit=3.0)
    run = run_of(model, env, tmp_path / "ray", max_steps=1)
    assert (num_deaths(tmp_path), lost_calls(run)) == (1, 1)
    expected = run_of(model, FINE, tmp_path / "local", max_steps=1)
    assert_same_rollouts_and_weights(run, expected)


@pytest.mark.parametrize("on_failure", [None, FallbackReward(0.0)])
def test_calls_that_are_lost_too_often_fail_their_rollouts_without_a_number(on_failure, tmp_path):
    options = {} if on_failure is None else {"on_failure": on_failure}
    env = placed(scored_by(DeadlyReward(str(tmp_path), 9), **options), tries=2)
    rollouts = play(env, ["a"], ["b"])
    assert num_deaths(tmp_path) == 2
    for index, rollout in enumerate(rollouts):
        assert rollout.error.startswith(
            f"task key, rollout {index}: the actor of Ray was lost 2 times: ActorDiedError: "
        )
        assert rollout.reward != rollout.reward  # NaN


def test_lost_replies_end_the_rollout_with_an_error(tmp_path):
    env = placed(MultiTurn(DeadlyGames(str(tmp_path), 9), max_turns=3), tries=1)
    (rollout,) = play(env, ["A", "B", "C"])
    assert len(rollout.turns) == 2  # the reply to the second text was lost
    assert "the actor of Ray was lost 1 times" in rollout.error
    assert num_deaths(tmp_path) == 1


def test_a_run_ends_or_goes_on_without_scores_as_on_unscored_says(model, tmp_path):
    env = placed(scored_by(DeadlyReward(str(tmp_path), 99)), tries=1)
    with pytest.raises(UnscoredStepError, match=r"none of 8 rollouts could be scored\. task task "):
        run_of(model, env, tmp_path / "stop")
    run = run_of(model, env, tmp_path / "continue", on_unscored="continue")
    records = [json.loads(line) for line in run["rollouts"].splitlines()]
    assert len(records) == 16
    assert all("the actor of Ray was lost 1 times" in record["error"] for record in records)


def test_an_answer_that_ends_its_process_costs_no_rollout_of_another_task(tmp_path):
    """Calls that ran beside it are repeated, each alone."""
    env = placed(scored_by(DeadlyAnswers("x", str(tmp_path))))
    tasks = [Task(f"{i}", "x" if i == 3 else "a") for i in range(12)]
    rollout = Rollout((("a", response("a")),))

    async def score():
        opened = open_env(env)
        return await asyncio.gather(*(opened.score(task, [rollout]) for task in tasks))

    errors = [bool(result.error) for (result,) in asyncio.run(score())]
    assert errors == [i == 3 for i in range(12)]
