"""Sessions, the cut context and the comparison of the recipe of Think-in-Memory."""

import asyncio

import pytest

from grupo.core.interfaces import run_rollout
from grupo.core.types import Rollout
from grupo.envs import MultiTurn
from grupo.rollouts.turns.private_context import task_text
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT
from tests.helpers.scripted_actor import script

FOLDER = ROOT / "recipes" / "agents"


@pytest.fixture
def load(monkeypatch):
    """Loads a module of the folder, whose neighbours it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return lambda name: load_module_file(FOLDER / f"{name}.py")


def test_questions_are_about_the_last_fact_of_a_person(load):
    sessions = load("sessions")
    for task in sessions.visits(0, 5):
        text = " ".join(task.columns["sessions"])
        assert len(task.columns["sessions"]) == 16
        for question, answer in zip(
            task.columns["questions"], task.columns["answers"], strict=True
        ):
            name = question.split()[2]
            assert text.rpartition(f"{name} has ")[2].startswith(f"{answer} .")


def test_the_reward_is_the_share_of_right_answers(load):
    sessions = load("sessions")
    (task,) = sessions.visits(3, 1, sessions=4, questions=2)
    first, second = task.columns["answers"]
    wrong = next(animal for animal in sessions.ANIMALS if animal != second)
    env = sessions.Sessions()
    read = [env.reset(task)]
    rewards = []
    for text in ("fine .", "fine .", "", "fine .", f"It is {first.upper()} .", wrong):
        observation, reward, done = env.step(text)
        read.append(observation)
        rewards.append(reward)
    assert read[:-1] == [*task.columns["sessions"], *task.columns["questions"]]
    assert rewards == [0, 0, 0, 0, 0.5, 0]
    assert done


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_cut_context_has_the_last_observations_alone(load, turns):
    recipe = load("think_in_memory")
    (task,) = load("sessions").visits(0, 1, sessions=4, questions=1)
    actor = script(lambda context, key: ".")
    env = MultiTurn(load("sessions").Sessions).open()
    rollout = asyncio.run(run_rollout(task, env, actor, turn_strategy=recipe.CutContext(turns)))
    observations = [task_text(observation) for observation, _ in rollout.turns]
    last = [*observations[4 - turns : 4], observations[4]]
    assert actor.log[-1][0].split("\n") == ([*last, ""] if turns else last)
    assert rollout.notes == Rollout().notes == ()


def test_the_memory_is_compared_with_the_shortest_cut_of_at_least_as_many_tokens(load):
    equal_cut = load("think_in_memory").equal_cut
    tokens = {"memory": 50.0, "cut to 0": 10.0, "cut to 1": 50.0, "cut to 2": 90.0}
    runs = {name: [{"tokens": value}] for name, value in tokens.items()}
    assert equal_cut(runs, "memory") == "cut to 1"


@pytest.mark.slow
def test_all_arms_run_on_a_barely_trained_model(load, tmp_path):
    recipe = load("think_in_memory")
    model = recipe.save_model(tmp_path, steps=4)
    policy = recipe.CausalLM(str(model), max_new_tokens=8).build()
    tasks = list(load("sessions").visits(0, 1, sessions=4, questions=1))
    for strategy in recipe.strategies().values():
        found = recipe.measured(policy, tasks, strategy, 0)
        assert 0 <= found["right"] <= 1
        assert found["tokens"] == found["generated"] + found["read"] > 0
