"""The examples of docs/environments.md run."""

import re

import pytest

from grupo.config.strategies import SelfChecking
from grupo.config.validate import check_recipe
from grupo.core.component import walk
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from tests.helpers.paths import ROOT
from tests.helpers.scripted_play import play

PAGE = (ROOT / "docs" / "environments.md").read_text()


def run_example(section, **given):
    """Execute the snippet of a section with the given variables; returns all variables."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    variables = {"__name__": "example", **given}
    exec(code, variables)
    return variables


def check(env):
    for part in walk(env):
        if isinstance(part, SelfChecking):
            part.check()


def test_the_gymnasium_example_is_a_valid_environment_with_tasks():
    pytest.importorskip("gymnasium")
    example = run_example("Gymnasium")
    check(example["env"])
    assert len(example["tasks"].load()) == 500
    assert "Keep the pole up" in example["tasks"].load()[0].prompt


def test_the_verifiers_example_is_a_recipe_whose_environment_and_tasks_load(tmp_path, monkeypatch):
    pytest.importorskip("verifiers", reason="verifiers is not installed: make test-adapters")
    (tmp_path / "reverse_text.py").write_text(
        "from tests.helpers.vf_envs import load_environment\n"
    )
    monkeypatch.chdir(tmp_path)
    recipe = run_example("verifiers", model=CausalLM("model"))["recipe"]
    check(recipe.env)
    assert len(recipe.tasks.load()) == 6


def test_the_tasksets_example_is_a_recipe_whose_tasks_load():
    pytest.importorskip("verifiers", minversion="0.4", reason="make test-adapters")
    pytest.importorskip("reverse_words", reason="tests/helpers/tasksets is not installed")
    recipe = run_example("Tasksets", model=CausalLM("model"))["recipe"]
    check(recipe.env)
    assert len(recipe.tasks.load()) == 4


def test_the_mcp_example_offers_the_tools_of_the_server_beside_others():
    pytest.importorskip("mcp")
    env = run_example("MCP tool servers", reward=lambda task, rollout: 1.0)["env"]
    assert [type(tool).__name__ for tool in env.env_factory.tools] == ["McpServer", "Python"]


def test_the_openenv_example_plays_in_a_server():
    pytest.importorskip("openenv", reason="OpenEnv is not installed: make test-adapters")
    from tests.helpers.openenv_server import MoveAction, MoveObservation, Moves, served

    with served(Moves, MoveAction, MoveObservation) as (url, _):
        example = run_example("OpenEnv", url=url)
        check(example["env"])
        task = example["tasks"].load()[0]
        (rollout,) = play(example["env"], ["up", "0 1"], task=task)
    assert rollout.turns[0][0].startswith("Answer with a row and a column.")
    assert (rollout.reward, rollout.reward_terms["invalid_actions"]) == (1.0, 1.0)


def call(observation, rng):
    """An opponent that always calls."""
    return "[Call]"


def test_the_text_arena_example_is_a_valid_game_of_four_players():
    pytest.importorskip("textarena")
    example = run_example("TextArena", one_at_a_time=call)
    check(example["env"])
    names = ("env", "tasks", "method")
    parts = {name: example[name] for name in names}
    check_recipe(Recipe(CausalLM("model"), prompts_per_step=48, **parts))
    assert len(example["tasks"].load()) == 500
