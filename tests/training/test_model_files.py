"""A run goes on with the GGUF file that it began with, and with no other one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grupo.envs import RewardTerm, SingleTurn
from grupo.models.base import AuxModel
from grupo.models.lora import Lora
from grupo.recipe import Recipe
from grupo.rewards import LocalModel, Rubric
from grupo.rewards.judges.rubric_items import RubricItem
from grupo.training.resume.extend import extend_run
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.start_from import with_model
from grupo.training.resume.stored_recipe import ModelFile, model_files_with_checksums
from grupo.training.start import resume_training, run_training
from grupo.util.errors import ConfigError
from tests.helpers.fast_cases import fast_cases
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.tiny_gguf import tiny_model, write_gguf
from tests.helpers.training_recipes import base

OTHER = "is not the file that the run began with: its SHA-256 differs. Put back the original"
GONE = "is gone. A run needs the model that it began with whenever it is resumed"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRUPO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write_gguf(Path("x.gguf"))


@pytest.fixture
def recipe() -> Recipe:
    """Adapters on the file, saved after each of two steps."""
    plain = base("x.gguf").replace(max_steps=2, save_every=1)
    return plain.replace(policy=replace(plain.policy, lora=Lora(2)))


@pytest.fixture
def run(recipe: Recipe) -> Path:
    run_training(recipe, "run")
    return Path("run")


def longer(recipe: Recipe) -> Recipe:
    return recipe.replace(max_steps=3)


USES = {
    "resume": resume_training,
    "extend": lambda run: extend_run(run, longer),
    "evaluate or export": load_policy,
    "start from": lambda run: with_model(RunFolder.open(run).recipe, str(run)),
}


@pytest.mark.slow
def test_a_recipe_keeps_the_name_and_a_run_the_checksum(run, recipe):
    data = json.loads((run / "recipe.json").read_text())
    assert data["recipe"]["policy"]["model"] == "x.gguf"
    (file,) = RunFolder.open(run).stored_recipe.model_files
    assert data["model_files"] == {"x.gguf": file.sha256}
    assert RunFolder.open(run).recipe == recipe


@pytest.mark.slow
@pytest.mark.parametrize("use", fast_cases(1, USES))
def test_a_run_is_not_used_with_another_file(run, use):
    original = Path("x.gguf").read_bytes()
    write_gguf(Path("x.gguf"), tiny_model(seed=1))
    with pytest.raises(ConfigError, match=OTHER):
        USES[use](run)
    Path("x.gguf").write_bytes(original)
    USES[use](run)


@pytest.mark.slow
@pytest.mark.parametrize("use", fast_cases(1, USES))
def test_a_run_is_not_used_without_its_file(run, use):
    Path("x.gguf").rename("away.gguf")
    with pytest.raises(ConfigError, match=f"'x.gguf' {GONE}"):
        USES[use](run)
    Path("away.gguf").rename("x.gguf")
    USES[use](run)


def test_a_run_of_which_no_checkpoint_is_there_is_not_resumed_with_another_file(recipe):
    RunFolder.create(Path("run"), recipe)[1].__exit__()
    write_gguf(Path("x.gguf"), tiny_model(seed=1))
    with pytest.raises(ConfigError, match=OTHER):
        resume_training("run")


@pytest.mark.slow
def test_an_extended_run_is_the_longer_one_and_keeps_the_checksum(run, recipe):
    extend_run(run, longer)
    assert [file.path for file in RunFolder.open(run).stored_recipe.model_files] == ["x.gguf"]
    resume_training(run)
    run_training(longer(recipe), "longer")
    first, second = (load_policy(Path(name))[0].weights() for name in ("run", "longer"))
    assert all(torch.equal(first[name], weight) for name, weight in second.items())


@pytest.mark.slow
def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(run, recipe):
    RunFolder.create(Path("resumed"), recipe)[1].__exit__()
    resume_training("resumed")
    assert differences(outcome(Path("resumed")), outcome(run)) == []


@pytest.mark.slow
def test_an_edited_checksum_is_found(run):
    path = run / "recipe.json"
    (file,) = RunFolder.open(run).stored_recipe.model_files
    path.write_text(path.read_text().replace(file.sha256, 64 * "0"))
    with pytest.raises(ConfigError, match="was edited or damaged since the run began"):
        RunFolder.open(run)


def test_teachers_and_judges_are_recorded_once_each(recipe):
    write_gguf(Path("judge.gguf"), tiny_model(seed=2))
    judge = Rubric(LocalModel("judge.gguf"), (RubricItem("short", "It is short."),))
    teacher = AuxModel("teacher", replace(recipe.policy, lora=None))
    env = SingleTurn((RewardTerm("judged", judge),))
    files = model_files_with_checksums(recipe.replace(env=env, aux_models=(teacher,)))
    assert [file.path for file in files] == ["x.gguf", "judge.gguf"]
    assert files[0] == ModelFile("x.gguf", files[0].sha256)


def test_a_folder_has_no_checksum(recipe):
    policy = replace(recipe.policy, model="folder")
    assert model_files_with_checksums(recipe.replace(policy=policy)) == ()
