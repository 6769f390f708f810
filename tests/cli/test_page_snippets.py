"""Every snippet of every page works: `grupo` lines are parsed, Python is executed.

docs/command_line.md is executed as a whole by test_command_line_page.py, docs/judges.md and
docs/environments.md by tests/docs, docs/recipe_files.md by tests/config/recipe_files.
"""

import json
import shutil
from pathlib import Path

import pytest
from typer import BadParameter

import grupo as package
from grupo.cli.main import main
from grupo.config.validate import check_recipe
from grupo.models.causal_lm import CausalLM
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.doc_snippets import commands, fenced_blocks, validate
from tests.helpers.paths import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "comparisons").glob("*.md")),
]
WITH_COMMANDS = [page for page in PAGES if list(commands(page.read_text()))]
EXECUTED_ELSEWHERE = {"judges.md", "environments.md", "notebook.md"}
WITH_PYTHON = [
    page
    for page in PAGES
    if fenced_blocks(page.read_text(), "python") and page.name not in EXECUTED_ELSEWHERE
]
LANGUAGES = {"", "console", "python", "text", "toml", "yaml", "json"}
UsageError = BadParameter.__base__
# files that commands name and that belong to the reader
TABLES = ("train.jsonl", "rows.jsonl")
FUNCTIONS = "\n".join(
    f"\n\ndef {name}(completions, **columns):\n    return [0.0 for _ in completions]\n"
    for name in ("correct", "score", "short")
)


@pytest.fixture(scope="module")
def reader_home(home, tmp_path_factory):
    """A folder with everything that the pages name."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("recipe.py", "method.py", "rewards.py", "tasks.jsonl", "grpo.py"):
        shutil.copy(home / name, folder / name)
    with (folder / "rewards.py").open("a") as file:
        file.write(FUNCTIONS)
    for name in TABLES:
        shutil.copy(home / "tasks.jsonl", folder / name)
    for name in ("judged", "asked", "answers", "steps"):  # of docs/reward_models.md
        for place in (folder / "rows", folder / "rows" / "other"):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(home / "pairs.jsonl", place / f"{name}.jsonl")
    shutil.copytree(home / "model", folder / "model")
    for name in ("examples", "recipes", "tests"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(home / "run", folder / "runs" / "other")
    block = fenced_blocks((ROOT / "docs" / "recipe_files.md").read_text(), "toml")[0]
    (folder / "recipe.toml").write_text(block)
    block = fenced_blocks((ROOT / "docs" / "pipelines.md").read_text(), "python")[0]
    (folder / "pipeline.py").write_text(f"from recipe import RECIPE as recipe\n{block}")
    return folder


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_every_command_line_of_a_page_is_accepted(page, reader_home, monkeypatch):
    monkeypatch.chdir(reader_home)
    for command in commands(page.read_text()):
        if not command.message:
            try:
                validate(command.arguments)
            except (ConfigError, UsageError) as error:
                pytest.fail(f"{page.name}: {command}: {error}")


def test_errors_that_a_page_shows_are_those_of_the_command(reader_home, monkeypatch, capsys):
    monkeypatch.chdir(reader_home)
    shown = [c for page in WITH_COMMANDS for c in commands(page.read_text()) if c.message]
    assert len(shown) >= 2
    for command in shown:
        with pytest.raises(SystemExit):
            main(list(command.arguments))
        assert " ".join(capsys.readouterr().err.split()) == f"grupo: {command.message}"


@pytest.fixture
def without_training(monkeypatch):
    """`train` checks the recipe instead, and a comparison is not run."""
    monkeypatch.setattr(package, "train", lambda recipe, run=None, **_: check_recipe(recipe))
    monkeypatch.setattr(package, "resume", lambda run, **_: None)
    monkeypatch.setattr("grupo.compare.run_comparison", lambda comparison, folder: comparison)


def execute(page: Path, text: str) -> None:
    """Run the Python snippets of a page one after the other, in one namespace."""
    policy = CausalLM("model", max_new_tokens=16, device="cpu")
    names = {
        "__name__": "snippet",
        "recipe": RECIPE.replace(policy=policy),
        "model": policy,
        "reward": lambda task, rollout: 1.0,
        "one_at_a_time": lambda observation, rng: "1",
    }
    for number, code in enumerate(fenced_blocks(text, "python"), 1):
        exec(compile(code, f"{page.name}, Python snippet {number}", "exec"), names)


@pytest.mark.usefixtures("without_training")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_every_python_snippet_of_a_page_runs(page, reader_home, monkeypatch):
    monkeypatch.chdir(reader_home)
    execute(page, page.read_text())


@pytest.mark.usefixtures("without_training")
@pytest.mark.parametrize(
    "code",
    [
        "from grupo.methods.dapo import dappo",
        "from grupo.methods.dapo import dapo\ndapo(max_lenght=64)",
        "from grupo import train\ntrain(recipe.replace(learning_rate=-1.0), run='runs/x')",
        "undefined_name",
    ],
)
def test_a_planted_wrong_python_snippet_is_found(code):
    with pytest.raises((ImportError, TypeError, ConfigError, NameError)):
        execute(Path("planted.md"), f"```python\n{code}\n```\n")


@pytest.mark.parametrize(
    "line",
    [
        "$ grupo trian recipe.py",
        "$ grupo train recipe.py --learning-rat 1e-5",
        "$ grupo train --method dapoo",
        'grupo train --policy.lora "Lora(r=8)"',
        "$ grupo compare --method grpoo --budget tokens=100",
        "$ grupo compare --bugdet tokens=100",
        "$ grupo rollouts runs/other --wurst 5",
        "$ grupo check",
        "$ grupo methods suggest --policy language extra",
        '$ grupo train --env "gymnasum:CartPole-v1"',
    ],
)
def test_a_planted_wrong_command_line_is_found(line, reader_home, monkeypatch):
    monkeypatch.chdir(reader_home)
    (command,) = commands(f"```console\n{line}   # a comment\n```\n")
    with pytest.raises((ConfigError, UsageError)):
        validate(command.arguments)


def test_every_block_of_a_page_has_a_language_that_a_test_reads():
    for page in PAGES:
        languages = {line[3:] for line in page.read_text().splitlines() if line.startswith("```")}
        assert languages <= LANGUAGES, page.name


def test_json_blocks_are_valid():
    for page in PAGES:
        for block in fenced_blocks(page.read_text(), "json"):
            json.loads(block)
