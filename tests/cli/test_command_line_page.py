"""Every `grupo` line of `docs/command_line.md` does what it says, in the order of the page."""

import re
import shlex
import shutil
from dataclasses import replace

import pytest

from grupo.cli.main import COMMAND_NAMES
from grupo.toy import quickstart
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "command_line.md"
LINES = re.findall(r"^\$ grupo ?(.*)$", PAGE.read_text(), re.MULTILINE)
WORDS = [shlex.split(line, comments=True) for line in LINES]


@pytest.fixture
def small_quickstart(tmp_path, monkeypatch):
    """The quickstart of a model that grows and trains in a second, in a folder of its own."""
    held_out = replace(quickstart.EVAL_TASKS, size=4)
    size = {"width": 16, "layers": 1, "heads": 2, "inner": 32, "batch": 4, "steps": 2}
    seedling = replace(quickstart.TOY_MODEL, eval_tasks=held_out, **size)
    policy = replace(quickstart.RECIPE.policy, model=str(seedling.model_dir), limit=8)
    recipe = quickstart.RECIPE.replace(
        policy=policy, eval_tasks=held_out, max_steps=1, prompts_per_step=2
    )
    monkeypatch.setattr(quickstart, "SEEDLING", seedling)
    monkeypatch.setattr(quickstart, "RECIPE", recipe)


@pytest.mark.usefixtures("small_quickstart")
def test_every_line_of_the_page_runs(grupo, home, tmp_path, monkeypatch):
    folder = tmp_path / "home"
    shutil.copytree(home, folder)
    monkeypatch.chdir(folder)
    for words in WORDS:
        code, _, err = grupo(*words)
        assert (code, err) == (0, ""), words
    assert (folder / ".grupo" / "models").is_dir()
    assert (folder / "exported" / "model.safetensors").is_file()
    assert (folder / "grown" / "grown.json").is_file()
    begun = [
        words for words in WORDS if words[:1] in ([], ["train"]) and "--show-config" not in words
    ]
    assert len(list((folder / "runs").iterdir())) == len(begun) > 10


def test_every_verb_is_on_the_page():
    assert set(COMMAND_NAMES) - {words[0] for words in WORDS if words} == set()
