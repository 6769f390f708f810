"""What cells need and is not there is refused before any of them starts."""

import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

from grupo.compare import Comparison, Steps, TaskSet, manifest, run_comparison
from grupo.compare.run import estimate_cost
from grupo.core.errors import ConfigError
from grupo.envs import RewardTerm, SingleTurn
from grupo.models.aux_models import AuxModel
from grupo.rewards import ImportedReward
from grupo.tasks import DatasetTasks
from grupo.testing.smoke.echo_env import EchoTasks
from tests.helpers.prebuilt_models import Pot


@pytest.fixture
def with_model(comparison, recipe):
    """The comparison with another model."""

    def make(model: str) -> Comparison:
        named = recipe.replace(policy=replace(recipe.policy, model=model))
        return replace(comparison, recipes={"grpo": recipe, "other": named})

    return make


def refused(comparison: Comparison, out: Path) -> str:
    """What compare and its plan say, one line, before anything is written."""
    with pytest.raises(ConfigError) as planning:
        estimate_cost(comparison, out)
    with pytest.raises(ConfigError) as comparing:
        run_comparison(comparison, out)
    assert str(planning.value) == str(comparing.value)
    assert "\n" not in str(comparing.value)
    assert not out.exists()
    return str(comparing.value)


def test_a_model_that_is_no_folder(with_model, recipe, tmp_path):
    missing = str(Path(recipe.policy.model).with_name("modell"))
    assert refused(with_model(missing), tmp_path / "out").startswith(
        f"model: {missing!r} is not a folder. "
    )


def test_a_model_that_is_an_empty_folder(with_model, tmp_path):
    (tmp_path / "empty").mkdir()
    said = refused(with_model(str(tmp_path / "empty")), tmp_path / "out")
    assert said.endswith("has no config.json; it holds nothing.")


def test_a_model_that_no_hub_knows(with_model, monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    said = refused(with_model("nobody/nothing"), tmp_path / "out")
    assert said.startswith("model: 'nobody/nothing' is no folder, and as a name on the hub it does")
    assert said.endswith("Allowed: a model's folder, or its name on the hub.")


def test_the_model_of_somebody_whose_signals_are_read(comparison, recipe, tmp_path):
    teacher = AuxModel("teacher", replace(recipe.policy, model="./teacher"))
    recipes = {"grpo": recipe, "taught": recipe.replace(aux_models=(teacher,))}
    said = refused(replace(comparison, recipes=recipes), tmp_path / "out")
    assert said.startswith("model: './teacher' is not a folder.")


def test_tasks_that_are_not_there(comparison, recipe, tmp_path):
    lost = DatasetTasks(str(tmp_path / "lost.jsonl"))
    assert refused(of_tasks(comparison, tasks=lost), tmp_path / "out").startswith(
        f"tasks: There is no file {tmp_path / 'lost.jsonl'}."
    )
    assert refused(of_tasks(comparison, held_out=lost), tmp_path / "out").startswith(
        f"held_out: There is no file {tmp_path / 'lost.jsonl'}."
    )


def test_tasks_of_which_too_few_are_there_to_be_held_out(comparison, tmp_path):
    said = refused(of_tasks(comparison, held_out=16), tmp_path / "out")
    assert said == "Nothing is left to train on: every task of the source is held out."
    said = refused(of_tasks(comparison, held_out=17), tmp_path / "out")
    assert said.startswith("held_out: 17 different tasks were asked for")


def test_the_second_of_two_task_sets_is_looked_at_too(comparison, tmp_path):
    sets = {
        "few": TaskSet(EchoTasks(copies=2), 4),
        "lost": TaskSet(DatasetTasks("./lost.jsonl"), 4),
    }
    said = refused(replace(comparison, task_sets=sets), tmp_path / "out")
    assert said.startswith("tasks: There is no file lost.jsonl.")


def test_a_reward_that_went_missing_since_is_named_with_the_folder(failing, tmp_path):
    source = next(part.reward.place for part in failing.env.rewards).rpartition(":")[0]
    shutil.copy(source, tmp_path / "rewards.py")
    world = SingleTurn(
        (RewardTerm("nothing", ImportedReward(f"{tmp_path / 'rewards.py'}:nothing")),)
    )
    manifest.save_comparison(
        Comparison({"a": failing.replace(env=world)}, Steps(1), metric="reward"), tmp_path
    )
    path = tmp_path / manifest.MANIFEST_FILE
    path.write_text(path.read_text().replace("rewards.py", "gone.py"))
    with pytest.raises(ConfigError) as said:
        manifest.load_comparison(tmp_path)
    assert str(said.value).startswith(f"out: {path}: There is no file '{tmp_path / 'gone.py'}'.")


def test_a_model_that_is_grown_first_need_not_be_there(comparison, with_model, tmp_path):
    missing = str(tmp_path / "seedling")
    one = replace(with_model(missing), toy_models=(Pot(missing),))
    with pytest.raises(TypeError, match="nobody knows how to grow it"):  # it was to be grown
        run_comparison(one, tmp_path / "out")


def test_what_is_finished_needs_nothing_any_more(comparison, recipe, tmp_path):
    shutil.copytree(recipe.policy.model, tmp_path / "model")
    own = recipe.replace(policy=replace(recipe.policy, model=str(tmp_path / "model")))
    one = replace(comparison, recipes={"grpo": own}, seeds=1)
    run_comparison(one, tmp_path / "out")
    shutil.rmtree(tmp_path / "model")
    (outcome,) = run_comparison(one, tmp_path / "out").run_statuses
    assert outcome.status == "finished"
    with pytest.raises(ConfigError, match="is not a folder"):
        run_comparison(replace(one, seeds=2), tmp_path / "out")


def of_tasks(comparison: Comparison, **changes) -> Comparison:
    recipes = {name: recipe.replace(**changes) for name, recipe in comparison.recipes.items()}
    return replace(comparison, recipes=recipes)
