"""Every `grupo` line of `docs/command_line.md` succeeds, in the order of the page."""

import re
import shlex
import shutil
from dataclasses import replace

import pytest

from grupo.cli.main import COMMAND_NAMES
from grupo.toy import quickstart
from tests.helpers.in_process_runs import runs_in_process
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "command_line.md"
LINES = re.findall(r"^\$ grupo ?(.*)$", PAGE.read_text(), re.MULTILINE)
CHOICE = re.compile(r"[\w.]+ = \S+: \w")
COMMANDS = [shlex.split(line, comments=True) for line in LINES]

TOY_MODEL_SIZE = {
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 32,
    "prompts_per_step": 16,
    "max_steps": 2,
}


@pytest.fixture
def small_quickstart(tmp_path, monkeypatch):
    """A quickstart whose toy model trains in a second, in a folder of its own."""
    eval_tasks = replace(quickstart.EVAL_TASKS, size=4)
    toy_model = replace(quickstart.TOY_MODEL, eval_tasks=eval_tasks, **TOY_MODEL_SIZE)
    model = str(toy_model.model_dir)
    policy = replace(quickstart.RECIPE.policy, model=model, max_new_tokens=8)
    recipe = quickstart.RECIPE.replace(
        policy=policy, eval_tasks=eval_tasks, max_steps=1, prompts_per_step=16
    )
    monkeypatch.setattr(quickstart, "TOY_MODEL", toy_model)
    monkeypatch.setattr(quickstart, "RECIPE", recipe)


def is_expected(line: str, arguments: list[str]) -> bool:
    """Whether a command may print the line: an estimate, a default, a warning, or a length."""
    if arguments[:1] == ["ask"]:  # who answers, the attempts, and the length of the answers
        return line.startswith((arguments[1], "[attempt", "in all")) or "ended by" in line
    if "--strategy" in arguments:  # the yardstick
        return line.startswith("self-consistency counts answers of")
    if "--dry-run" not in arguments:
        return False
    if "--bind" in arguments:
        return line.startswith("Anybody who reaches")
    return "estimated" in line or ("--model" in arguments and bool(CHOICE.match(line)))


@pytest.mark.usefixtures("small_quickstart", "short_smoke_training")
@pytest.mark.slow
def test_every_command_of_the_page_succeeds(grupo, home, tmp_path, monkeypatch):
    folder = tmp_path / "home"
    shutil.copytree(home, folder)
    monkeypatch.chdir(folder)
    with runs_in_process():  # test_compare.py trains the same comparison in processes
        for arguments in COMMANDS:
            code, _, err = grupo(*arguments)
            assert code == 0, (arguments, err)
            lines = err.splitlines()
            assert all(is_expected(line, arguments) for line in lines), (arguments, err)
    assert (folder / ".grupo" / "models").is_dir()
    assert (folder / "exported" / "model.safetensors").is_file()
    assert (folder / "toy_model" / "toy_model.json").is_file()
    trainings = [arguments for arguments in COMMANDS if arguments[:1] in ([], ["train"])]
    num_runs = sum("--dry-run" not in arguments for arguments in trainings)
    assert len(list((folder / "runs").iterdir())) == num_runs > 10


def test_every_command_is_on_the_page():
    assert set(COMMAND_NAMES) - {arguments[0] for arguments in COMMANDS if arguments} == set()
