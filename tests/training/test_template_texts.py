"""A run keeps the text of a chat template that its recipe names by file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.core.component import to_code
from grupo.models.base import AuxModel
from grupo.models.masked_diffusion import MaskedDiffusion
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.models.template_file import TemplateFile
from grupo.pipeline import Pipeline, Stage
from grupo.pipeline.pipeline_file import pipeline_text
from grupo.recipe import Recipe
from grupo.training.resume.extend import extend_run
from grupo.training.resume.load_run import load_policy
from grupo.training.resume.run_folder import RunFolder
from grupo.training.resume.template_texts import stored_templates, with_template_texts
from grupo.training.start import create_trainer, reopen_trainer, resume_training
from grupo.util.errors import ConfigError
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.tiny_lm import ALPHABET, save_model
from tests.helpers.training_recipes import base

FILE = "own.jinja"
TEXT = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }} {% endfor %}A:"
OTHER = "{% for m in messages %}{{ m.content }}{% endfor %}"
CHANGED = f"chat_template: '{FILE}' has changed since the run began."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    size = {"vocab_size": len(ALPHABET) + 2, "max_position_embeddings": 400}
    return str(save_model(tmp_path_factory.mktemp("model"), **size))


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(FILE).write_text(TEXT)


@pytest.fixture
def recipe(model: str) -> Recipe:
    """Two steps of prompts that the file renders."""
    plain = base(model).replace(max_steps=2, save_every=1)
    policy = replace(plain.policy, apply_chat_template=True, chat_template=FILE)
    return plain.replace(policy=policy)


def begin(recipe: Recipe, run: str) -> Path:
    create_trainer(recipe, Path(run)).lock.__exit__(None, None, None)
    return Path(run)


def test_a_run_keeps_path_and_text(recipe):
    run = begin(recipe, "run")
    stored = json.loads((run / "recipe.json").read_text())["recipe"]["policy"]["chat_template"]
    assert (stored["path"], stored["text"]) == (FILE, TEXT)
    file = RunFolder.open(run).recipe.policy.chat_template
    assert file == TemplateFile(FILE, TEXT)
    assert to_code(file) == f"'{FILE}'"


@pytest.mark.slow
@pytest.mark.parametrize("later", [OTHER, "", None], ids=["changed", "emptied", "removed"])
def test_a_run_is_resumed_and_evaluated_with_the_text_that_it_began_with(recipe, later):
    whole = Path("whole")
    trainer = create_trainer(recipe, whole)
    with trainer.lock:
        trainer()
    run = begin(recipe, "run")
    Path(FILE).unlink() if later is None else Path(FILE).write_text(later)
    resume_training(run)
    assert differences(outcome(run), outcome(whole)) == []
    assert load_policy(run)[0].saveable.chat_template == TEXT


def test_a_resumed_run_says_that_the_file_has_changed(recipe):
    run = begin(recipe, "run")
    for text, expected in ((TEXT, False), (OTHER, True), ("", True), (None, False)):
        Path(FILE).unlink() if text is None else Path(FILE).write_text(text)
        trainer = reopen_trainer(run)
        trainer.lock.__exit__(None, None, None)
        shown = [line.startswith(CHANGED) for line in trainer.learner.start_messages]
        assert any(shown) == expected, text


def test_a_run_is_of_the_same_recipe_whatever_the_file_holds_now(recipe):
    run_folder = RunFolder.open(begin(recipe, "run"))
    Path(FILE).unlink()
    run_folder.check_same_recipe(recipe)
    Path("second.jinja").write_text(TEXT)
    other = recipe.replace(policy=replace(recipe.policy, chat_template="second.jinja"))
    with pytest.raises(ConfigError, match=r"begun with policy = .*'own\.jinja'.*second\.jinja"):
        run_folder.check_same_recipe(other)


def test_an_extended_run_keeps_the_text(recipe):
    run = begin(recipe, "run")
    Path(FILE).write_text(OTHER)
    extend_run(run, lambda _: recipe.replace(max_steps=3))
    extended = RunFolder.open(run).recipe
    assert extended.max_steps == 3
    assert extended.policy.chat_template == TemplateFile(FILE, TEXT)


def test_templates_of_all_models_are_kept(recipe):
    masked = MaskedDiffusion("folder", chat_template=FILE)
    policies = MultiPolicy(recipe.policy, (RolePolicy("other", masked),))
    teacher = AuxModel("teacher", replace(recipe.policy, chat_template="teacher.jinja"))
    Path("teacher.jinja").write_text(OTHER)
    kept = with_template_texts(recipe.replace(policy=policies, aux_models=(teacher,)))
    assert stored_templates(kept) == {
        FILE: TemplateFile(FILE, TEXT),
        "teacher.jinja": TemplateFile("teacher.jinja", OTHER),
    }
    assert kept.policy.roles[0].policy.chat_template.text == TEXT
    assert with_template_texts(kept) is kept


def test_a_pipeline_keeps_the_texts_of_its_stages(recipe):
    pipeline = with_template_texts(Pipeline((Stage("rl", recipe),)))
    assert json.dumps(TEXT) in pipeline_text(pipeline)
    Path(FILE).write_text(OTHER)
    again = with_template_texts(Pipeline((Stage("rl", recipe),)), stored_templates(pipeline))
    assert again == pipeline
