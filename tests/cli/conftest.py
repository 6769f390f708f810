"""The folder of a user, and the command line as run in it."""

import hashlib
import json
import shutil
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from grupo.cli.main import main
from tests.helpers.command_line import Command, run_command
from tests.helpers.malformed_gguf import write_malformed_gguf
from tests.helpers.recipe_files import RECIPE_FILES, TRL_SCRIPT
from tests.helpers.run_outcomes import flip_bit
from tests.helpers.user_code import FUNCTIONS, METHOD, RECIPE, RECIPES, REWARDS
from tests.helpers.user_inputs import write_models, write_tasks


def write_malformed_rows(folder: Path) -> None:
    """Tables whose last line is malformed."""
    good = [json.dumps({"prompt": f"{i} + 1 ="}) for i in range(8)]
    rows = {
        "nan": '{"prompt": "1", "answer": NaN}',
        "twice": '{"prompt": "1", "prompt": "2"}',
        "surrogate": '{"prompt": "a \\ud800"}',
        "deep": '{"prompt": "1", "answer": ' + "[" * 900 + "]" * 900 + "}",
    }
    for name, row in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join([*good, row]))


def write_malformed_models(folder: Path) -> None:
    """Copies of the model with malformed configurations."""
    config = json.loads((folder / "model" / "config.json").read_text())
    texts = {
        "c_list": "[]",
        "c_null": "null",
        "c_deep": "[" * 900 + "]" * 900,
        "c_types": json.dumps(config | {"hidden_size": "many"}),
        "c_heads": json.dumps(config | {"num_attention_heads": 0}),
        "c_layers": json.dumps(config | {"num_hidden_layers": 10**9}),
    }
    for name, text in {**texts, "c_tokenizer": ""}.items():
        shutil.copytree(folder / "model", folder / name)
        (folder / name / "config.json").write_text(text or json.dumps(config))
    (folder / "c_tokenizer" / "tokenizer_config.json").write_text("[]")


def write_damaged_runs(folder: Path) -> None:
    """Runs of an older version, and journals with errors."""
    for name in ("older", "odd", "torn", "flipped"):
        shutil.copytree(folder / "run", folder / name)
    flip_bit(folder / "flipped" / "rollouts.jsonl", 30)
    recipe = json.loads((folder / "older" / "recipe.json").read_text())["recipe"] | {"epochs": 1}
    fingerprint = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    data = {"fingerprint": fingerprint, "recipe": recipe}
    (folder / "older" / "recipe.json").write_text(json.dumps(data, indent=1))
    journal = folder / "older" / "rollouts.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        del line["reward_terms"], line["error"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with (folder / "odd" / "metrics.jsonl").open("a") as file:
        file.write('{"step": [2]}\n')
    journal = folder / "torn" / "rollouts.jsonl"
    journal.write_text("{\n" + journal.read_text())


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, tasks, rewards, recipes and a finished run; `docs/bad_input.md` lists them."""
    folder = tmp_path_factory.mktemp("home")
    write_models(folder)
    write_tasks(folder)
    (folder / "recipe.py").write_text(RECIPE)
    (folder / "broken.py").write_text("from grupo.recipe import Recipe\nRECIPE = Recipe(\n")
    (folder / "needy.py").write_text("\nimport nothing_that_is_here\n")
    (folder / "rewards.py").write_text(REWARDS)
    (folder / "method.py").write_text(METHOD)
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "several.py").write_text(RECIPES)
    for name, text in {"grpo.py": TRL_SCRIPT, **RECIPE_FILES}.items():
        (folder / name).write_text(text)
    write_malformed_rows(folder)
    write_malformed_models(folder)
    write_malformed_gguf(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit) as end:
            main(["train", "recipe.py", "--run", "run"])
    assert not end.value.code
    for name in ("edited", "damaged"):
        shutil.copytree(folder / "run", folder / name)
    text = (folder / "edited" / "recipe.json").read_text()
    (folder / "edited" / "recipe.json").write_text(text.replace('"max_steps": 2', '"max_steps": 3'))
    write_damaged_runs(folder)
    for path in (folder / "damaged" / "checkpoints").glob("*/weights.safetensors"):
        *whole, last = path.read_bytes()
        path.write_bytes(bytes([*whole, last ^ 1]))
    return folder


@pytest.fixture
def short_smoke_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """`grupo methods check` trains for two steps; tests/testing/smoke has tests of all steps."""
    module = import_module("grupo.testing.smoke.report_card")
    monkeypatch.setattr(module, "train_on_echo", partial(module.train_on_echo, max_steps=2))


@pytest.fixture
def grupo(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """Run a command line in `home`; returns the exit code, standard output and standard error."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")

    return run_command(capsys)
