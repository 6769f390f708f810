"""Every row of `docs/bad_input.md`: the message, the exit code, and that nothing is left behind."""

import re
import shlex
from pathlib import Path

import pytest

from grupo.core.exit_codes import EXIT_CONFIG_ERROR, EXIT_CORRUPT
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "bad_input.md"
ROW = re.compile(r"^\| (?P<given>[^|]+) \| `(?P<words>[^`]+)` \| (?P<said>[^|]+) \|", re.MULTILINE)
ROWS = [pytest.param(*row, id=row[0]) for row in ROW.findall(PAGE.read_text())]


def left_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize(("given", "words", "said"), ROWS)
def test_what_cannot_be_used_is_refused_in_one_message(grupo, home, given, words, said):
    before = left_in(home)
    code, out, err = grupo(*shlex.split(words))
    shown = re.sub(r"^(Usage: .*\nTry .*\n\n)?(grupo|Error): ", "", err).strip()
    pattern = ".*".join(map(re.escape, said.strip().split("…")))
    assert re.fullmatch(pattern, shown, re.DOTALL), shown
    assert code == (EXIT_CORRUPT if "exit code 4" in given else EXIT_CONFIG_ERROR)
    assert "Traceback" not in err
    assert out == ""
    assert left_in(home) == before


def test_the_page_has_rows():
    assert len(ROWS) > 80


def test_the_page_names_every_exit_code(grupo):
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", "130"]


def test_a_tokenizer_without_a_pad_token_trains(grupo, home, tmp_path):
    from transformers import AutoTokenizer

    assert AutoTokenizer.from_pretrained(home / "model").pad_token is None
    assert grupo("recipe.py", "--run", str(tmp_path / "run"))[0] == 0
    assert (tmp_path / "run" / "summary.json").is_file()


def test_a_tokenizer_without_an_end_trains_with_a_text_to_stop_at(grupo, tmp_path):
    words = ["--model", "endless", "--policy.stop", "('1',)", "--steps", "1"]
    assert grupo("recipe.py", *words, "--run", str(tmp_path / "run"))[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--steps", "0"],
        ["--tasks", "rg:chain_sum(size=20)"],  # fewer than the 200 to be held out
        ["--eval-tasks", "-1"],
        ["--reward", "nothing.py:here"],
        ["--method", "gpro"],
        ["--policy.max_new_tokens", "300"],
        ["--policy.device", "tpu"],
        ["--run", "taken"],
    ],
)
def test_the_quickstarts_model_is_not_grown_for_what_is_then_refused(
    grupo, tmp_path, monkeypatch, words
):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    before = left_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert grupo("train", *words)[0] == EXIT_CONFIG_ERROR
    assert left_in(tmp_path) == before


def test_a_reward_that_fails_where_the_recipe_says_stop_ends_the_run(grupo, tmp_path):
    run = str(tmp_path / "run")
    code, _, err = grupo("recipe.py:STRICT", "--run", run, "--eval-tasks", "0")
    assert code == 3
    resumes, said = err.splitlines()
    assert resumes == f"`grupo resume {run}` goes on from what was saved."
    assert re.fullmatch(r"grupo: task \w+, rollout 0: reward 'nothing' returned nan", said)


def test_a_mistake_of_the_program_keeps_its_traceback(grupo, monkeypatch):
    monkeypatch.setattr("grupo.report.doctor.examine", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        grupo("doctor", "run")


def test_a_folder_that_may_not_be_read_is_no_mistake_of_the_program(grupo, monkeypatch):
    def forbidden(run):
        raise PermissionError(13, "Permission denied", "run/metrics.jsonl")

    monkeypatch.setattr("grupo.report.doctor.examine", forbidden)
    code, _, err = grupo("doctor", "run")
    assert (code, err) == (3, "grupo: [Errno 13] Permission denied: 'run/metrics.jsonl'\n")
