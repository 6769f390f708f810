"""Missing models, tasks and rewards are rejected before any run starts."""

import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from grupo.compare import Comparison, Steps, TaskSet, manifest, run_comparison
from grupo.compare.run import estimate_cost
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.base import AuxModel
from grupo.tasks import DatasetTasks
from grupo.testing.smoke.echo_env import EchoTasks
from grupo.util.errors import ConfigError
from grupo.util.run_files import COMPARISON_FILE
from tests.helpers.in_process_runs import runs_in_process
from tests.helpers.prebuilt_models import PrebuiltModel


@pytest.fixture
def with_model(comparison, recipe):
    """The comparison with another model."""

    def make(model: str) -> Comparison:
        named = recipe.replace(policy=replace(recipe.policy, model=model))
        return replace(comparison, recipes={"grpo": recipe, "other": named})

    return make


def error_message(comparison: Comparison, out: Path) -> str:
    """The error of both running and estimating; nothing is written."""
    with pytest.raises(ConfigError) as estimate_error:
        estimate_cost(comparison, out)
    with pytest.raises(ConfigError) as run_error:
        run_comparison(comparison, out)
    assert str(estimate_error.value) == str(run_error.value)
    assert "\n" not in str(run_error.value)
    assert not out.exists()
    return str(run_error.value)


def test_missing_model_folder(with_model, recipe, tmp_path):
    missing = str(Path(recipe.policy.model).with_name("modell"))
    assert error_message(with_model(missing), tmp_path / "out").startswith(
        f"model: {missing!r} is not a folder. "
    )


def test_empty_model_folder(with_model, tmp_path):
    (tmp_path / "empty").mkdir()
    message = error_message(with_model(str(tmp_path / "empty")), tmp_path / "out")
    assert message.endswith("has no config.json; it holds nothing.")


def test_unknown_hub_model(with_model, monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    message = error_message(with_model("nobody/nothing"), tmp_path / "out")
    assert message.startswith(
        "model: 'nobody/nothing' is no folder, and the hub has not been reached: HF_HUB_OFFLINE"
    )
    assert "Allowed: a model's folder" in message


def test_missing_auxiliary_model(comparison, recipe, tmp_path):
    teacher = AuxModel("teacher", replace(recipe.policy, model="./teacher"))
    recipes = {"grpo": recipe, "taught": recipe.replace(aux_models=(teacher,))}
    message = error_message(replace(comparison, recipes=recipes), tmp_path / "out")
    assert message.startswith("model: './teacher' is not a folder.")


def test_missing_task_file(comparison, recipe, tmp_path):
    missing = DatasetTasks(str(tmp_path / "lost.jsonl"))
    assert error_message(
        with_recipe_fields(comparison, tasks=missing), tmp_path / "out"
    ).startswith(f"tasks: There is no file {tmp_path / 'lost.jsonl'}.")
    assert error_message(
        with_recipe_fields(comparison, eval_tasks=missing), tmp_path / "out"
    ).startswith(f"eval_tasks: There is no file {tmp_path / 'lost.jsonl'}.")


def test_too_few_tasks_to_hold_out(comparison, tmp_path):
    for count in (16, 17):
        message = error_message(with_recipe_fields(comparison, eval_tasks=count), tmp_path / "out")
        assert message.startswith(f"eval_tasks: {count}. Allowed: at most 15, one less than")


def test_missing_task_file_of_the_second_task_set(comparison, tmp_path):
    sets = {
        "few": TaskSet(EchoTasks(copies=2), 4),
        "lost": TaskSet(DatasetTasks("./lost.jsonl"), 4),
    }
    message = error_message(replace(comparison, task_sets=sets), tmp_path / "out")
    assert message.startswith("tasks: There is no file lost.jsonl.")


def test_missing_reward_file_of_a_saved_comparison(failing, tmp_path):
    source = next(term.fn for term in failing.env.rewards).rpartition(":")[0]
    shutil.copy(source, tmp_path / "rewards.py")
    env = SingleTurn((RewardTerm("failing", f"{tmp_path / 'rewards.py'}:failing"),))
    manifest.save_comparison(
        Comparison({"a": failing.replace(env=env)}, Steps(1), metric="reward"), tmp_path
    )
    path = tmp_path / COMPARISON_FILE
    path.write_text(path.read_text().replace("rewards.py", "gone.py"))
    with pytest.raises(ConfigError) as error:
        manifest.load_comparison(tmp_path)
    assert str(error.value).startswith(f"out: {path}: There is no file '{tmp_path / 'gone.py'}'.")


def test_toy_model_need_not_exist(comparison, with_model, tmp_path):
    missing = str(tmp_path / "toy")
    one = replace(with_model(missing), toy_models=(PrebuiltModel(missing),))
    with pytest.raises(TypeError, match="not a toy model that grupo can train"):
        run_comparison(one, tmp_path / "out")


@pytest.mark.slow
def test_finished_runs_do_not_need_their_model(comparison, recipe, tmp_path):
    shutil.copytree(recipe.policy.model, tmp_path / "model")
    own = recipe.replace(policy=replace(recipe.policy, model=str(tmp_path / "model")))
    one = replace(comparison, recipes={"grpo": own}, seeds=1)
    with runs_in_process():
        run_comparison(one, tmp_path / "out")
    shutil.rmtree(tmp_path / "model")
    (status,) = run_comparison(one, tmp_path / "out").run_statuses
    assert status.status == "finished"
    with pytest.raises(ConfigError, match="is not a folder"):
        run_comparison(replace(one, seeds=2), tmp_path / "out")


def with_recipe_fields(comparison: Comparison, **changes) -> Comparison:
    recipes = {name: recipe.replace(**changes) for name, recipe in comparison.recipes.items()}
    return replace(comparison, recipes=recipes)
