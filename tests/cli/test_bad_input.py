"""Every row of `docs/bad_input.md`: its message, its exit code, and that no file is created."""

import re
import shlex
from pathlib import Path

import pytest
import torch

from grupo.util.exit_codes import EXIT_CONFIG_ERROR, EXIT_CORRUPT
from grupo.util.out_of_memory import GPU_ADVICE, HOST_ADVICE
from tests.helpers.paths import ROOT

PAGE = ROOT / "docs" / "bad_input.md"
ROW = re.compile(
    r"^\| (?P<input>[^|]+) \| `(?P<arguments>[^`]+)` \| (?P<message>[^|]+) \|", re.MULTILINE
)
ROWS = [pytest.param(*row, id=row[0]) for row in ROW.findall(PAGE.read_text())]


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize(("case", "arguments", "message"), ROWS)
def test_invalid_input_ends_in_one_message(grupo, home, case, arguments, message):
    before = files_in(home)
    code, out, err = grupo(*shlex.split(arguments))
    shown = re.sub(r"^(Usage: .*\nTry .*\n\n)?(grupo|Error): ", "", err).strip()
    pattern = ".*".join(map(re.escape, message.strip().split("…")))
    assert re.fullmatch(pattern, shown, re.DOTALL), shown
    assert code == (EXIT_CORRUPT if "exit code 4" in case else EXIT_CONFIG_ERROR)
    assert "Traceback" not in err
    assert out == ""
    assert files_in(home) == before


def test_page_has_rows():
    assert len(ROWS) > 80


def test_page_lists_every_exit_code(grupo):
    codes = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert codes == ["0", "1", "2", "3", "4", "130"]


def test_tokenizer_without_pad_token_trains(grupo, home, tmp_path):
    from transformers import AutoTokenizer

    assert AutoTokenizer.from_pretrained(home / "model").pad_token is None
    assert grupo("recipe.py", "--run", str(tmp_path / "run"))[0] == 0
    assert (tmp_path / "run" / "summary.json").is_file()


def test_tokenizer_without_end_token_trains_with_a_stop_string(grupo, tmp_path):
    arguments = ["--model", "endless", "--policy.stop-strings", "('1',)", "--steps", "1"]
    assert grupo("recipe.py", *arguments, "--run", str(tmp_path / "run"))[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--steps", "0"],
        ["--tasks", "rg:chain_sum(size=20)", "--eval-tasks", "30"],
        ["--eval-tasks", "-1"],
        ["--reward", "nothing.py:here"],
        ["--method", "gpro"],
        ["--policy.max-new-tokens", "300"],
        ["--policy.device", "tpu"],
        ["--run", "taken"],
    ],
)
def test_quickstart_model_is_not_trained_before_invalid_input_is_rejected(
    grupo, tmp_path, monkeypatch, arguments
):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    before = files_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert grupo("train", *arguments)[0] == EXIT_CONFIG_ERROR
    assert files_in(tmp_path) == before


def test_failing_reward_with_raise_error_stops_the_run(grupo, tmp_path):
    run = str(tmp_path / "my run")
    code, _, err = grupo("recipe.py:STRICT", "--run", run, "--eval-tasks", "0")
    assert code == 3
    hint, message = err.splitlines()
    assert hint == f"`grupo resume '{run}'` continues with the first step."
    assert re.fullmatch(
        r"grupo: task tasks.jsonl, line \d+, rollout 0: reward 'nothing' returned nan", message
    )


def test_unexpected_error_keeps_its_traceback(grupo, monkeypatch):
    monkeypatch.setattr("grupo.report.doctor.examine", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        grupo("doctor", "run")


def test_unreadable_folder_is_not_an_unexpected_error(grupo, monkeypatch):
    def forbidden(run):
        raise PermissionError(13, "Permission denied", "run/metrics.jsonl")

    monkeypatch.setattr("grupo.report.doctor.examine", forbidden)
    code, _, err = grupo("doctor", "run")
    assert (code, err) == (3, "grupo: [Errno 13] Permission denied: 'run/metrics.jsonl'\n")


@pytest.mark.parametrize(
    ("allocate", "text", "advice"),
    [
        (lambda: bytearray(1 << 62), "MemoryError", HOST_ADVICE),
        (lambda: torch.empty(1 << 60), "allocate memory: you tried to allocate", HOST_ADVICE),
        (lambda: raise_error(torch.OutOfMemoryError("CUDA out of memory.")), "CUDA", GPU_ADVICE),
    ],
    ids=["Python", "torch on a CPU", "a GPU"],
)
def test_a_run_that_lacks_memory_says_so_and_can_be_resumed(
    grupo, tmp_path, monkeypatch, allocate, text, advice
):
    run = str(tmp_path / "my run")
    arguments = ["recipe.py", "--run", run, "--eval-tasks", "0"]
    with monkeypatch.context() as patch:
        patch.setattr("grupo.training.learner.Learner.step", lambda self: allocate())
        code, _, err = grupo(*arguments)
    hint, message = err.splitlines()
    assert code == 3
    assert hint == f"`grupo resume '{run}'` continues with the first step."
    assert message.startswith("grupo: Out of memory: ")
    assert text in message
    assert message.endswith(advice)
    assert grupo("resume", run)[0] == 0


def test_a_model_that_does_not_fit_in_memory_is_not_called_a_model_that_does_not_load(
    grupo, tmp_path, monkeypatch
):
    def fail(*_, **__):
        torch.empty(1 << 60)

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", fail)
    code, _, err = grupo("recipe.py", "--run", str(tmp_path / "run"))
    assert code == 3
    assert err.startswith("grupo: Out of memory: ")
    assert err.count("\n") == 1


def raise_error(error: Exception) -> None:
    raise error
