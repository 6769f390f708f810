"""Gymnasium environments as games in text."""

import re
from dataclasses import replace

import pytest

from tests.helpers.scripted_play import play

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: grupo[agents]")

from grupo.core.types import Task
from grupo.envs import MultiTurn
from grupo.envs.games import (
    ActionNames,
    EndEpisode,
    Gymnasium,
    GymnasiumTasks,
    RepeatObservation,
    TakeAction,
    gymnasium_env,
)
from grupo.util.errors import ConfigError
from tests.helpers.gym_envs import COUNTER, FRAGILE, LEVER

TASK = Task("k", "", 3)


def counter(**fields):
    """An environment that starts at its seed and adds the action, 0 to 2; the step reward is it."""
    return Gymnasium(COUNTER, **fields)


def play_counter(*texts, max_turns=9, **fields):
    (rollout,) = play(MultiTurn(counter(**fields), max_turns=max_turns), texts, task=TASK)
    return rollout


def test_the_return_is_the_sum_of_the_step_rewards_which_are_kept_for_each_turn():
    rollout = play_counter("1", "2", max_turns=2)
    assert [observation for observation, _ in rollout.turns] == ["3", "4"]
    assert rollout.reward == 3.0
    assert rollout.step_values["reward"] == (1.0, 2.0)


def test_a_terminated_episode_ends_the_rollout():
    rollout = play_counter("2", "2", "2", "2")
    assert rollout.reward_terms == {
        "env_reward": 4.0, "turns": 2.0, "done": 1.0, "truncated": 0.0, "invalid_actions": 0.0
    }  # fmt: skip


def test_the_step_limit_of_the_environment_truncates_the_rollout():
    rollout = play_counter("0", "0", "0", "0", "0", "0")
    assert (rollout.reward_terms["turns"], rollout.reward_terms["truncated"]) == (5.0, 1.0)


def test_an_invalid_action_repeats_the_observation_by_default():
    rollout = play_counter("1", "jump", "3", "2", max_turns=4)
    assert [observation for observation, _ in rollout.turns] == ["3", "4", "4", "4"]
    assert (rollout.reward, rollout.reward_terms["invalid_actions"]) == (3.0, 2.0)


@pytest.mark.parametrize(
    ("policy", "rewards", "turns"),
    [
        (RepeatObservation(0.5), (-0.5, 1.0), 2),
        (TakeAction(2, penalty=0.5), (1.5, 1.0), 2),
        (EndEpisode(-1.0), (-1.0,), 1),
    ],
)
def test_the_invalid_action_policy_decides_reward_and_end(policy, rewards, turns):
    rollout = play_counter("?", "1", max_turns=2, invalid_action=policy)
    assert rollout.step_values["reward"] == rewards
    assert (len(rollout.turns), rollout.reward_terms["invalid_actions"]) == (turns, 1.0)


def spell(observation):
    return f"at {int(observation[0])}"


def test_render_and_parse_translate_observations_and_actions():
    names = ActionNames(("stay", "one", "two"))
    rollout = play_counter("two", max_turns=1, render=spell, parse=names, instructions="Count!\n")
    assert rollout.turns[0][0] == "Count!\nat 3"
    assert rollout.reward == 2.0


def test_actions_of_a_continuous_space_are_lists_of_numbers():
    (rollout,) = play(MultiTurn(Gymnasium(LEVER), max_turns=3), ["[1, 0]", "[2, 0]", "x"])
    assert rollout.step_values["reward"][:6] == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert rollout.reward_terms["invalid_actions"] == 2.0  # 2 lies outside of the space


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1"])
def test_equal_texts_have_equal_noise_in_one_task_and_other_noise_in_another(env_id):
    env = MultiTurn(Gymnasium(env_id), max_turns=6)
    tasks = GymnasiumTasks(env.env_factory, 8).load()
    rollouts = [play(env, ["1"] * 6, ["1"] * 6, task=task) for task in tasks]
    assert all(first == second for first, second in rollouts)
    assert len({tuple(text for text, _ in first.turns) for first, _ in rollouts}) > 2


def test_tasks_are_seeds_that_derive_from_the_seed_of_their_source():
    tasks = GymnasiumTasks(Gymnasium("CartPole-v1"), 3)
    assert tasks.load()[:] == tasks.load()[:]
    assert len({task.prompt for task in tasks.load()}) == 3
    assert not {task.key for task in tasks.load()} & {t.key for t in replace(tasks, seed=1).load()}


def test_an_environment_that_raises_fails_its_rollout_with_the_cause():
    good, bad = play(MultiTurn(Gymnasium(FRAGILE), max_turns=3), ["0"] * 3, ["0", "1"], task=TASK)
    assert good.error == ""
    assert re.search(
        r"raised RuntimeError: the lever broke \(.*gym_envs.py:\d+\) at turn 2", bad.error
    )


def test_an_action_that_makes_the_environment_hang_is_an_answer_error():
    env = MultiTurn(Gymnasium(FRAGILE), max_turns=3, time_limit=0.2)
    (hanging,) = play(env, ["0", "2"], task=TASK)
    assert (hanging.error, hanging.reward) == ("", 0.0)
    assert (hanging.reward_terms["answer_error"], hanging.reward_terms["turns"]) == (1.0, 2.0)


def test_an_environment_whose_reset_hangs_is_refused_before_the_run(monkeypatch):
    monkeypatch.setattr(gymnasium_env, "CHECK_SECONDS", 0.1)
    with pytest.raises(ConfigError, match=r"Stuck-v0: TimeoutError: no result within 0.1 s"):
        Gymnasium("tests.helpers.gym_envs:Stuck-v0").check()


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Gymnasium("CartPol-v1"), r"no environment 'CartPol-v1'. Did you mean 'CartPole-v1'\?"),
        (Gymnasium("no_such_module:A-v0"), "no_such_module:A-v0: ModuleNotFoundError"),
        (counter(kwargs=(("speed", 1),)), r"Counter\(\) takes no arguments"),
        (counter(render=len), "render returned 1. Allowed: a text"),
    ],
)
def test_an_environment_that_cannot_work_is_refused(env, message):
    with pytest.raises(ConfigError, match=message):
        env.check()


def test_a_missing_gymnasium_is_refused(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(ConfigError, match=r"grupo\[agents\]"):
        Gymnasium("CartPole-v1").check()


@pytest.mark.parametrize("names", [(), ("up", "up")])
def test_action_names_are_distinct(names):
    with pytest.raises(ConfigError, match="names: "):
        ActionNames(names)
