"""The recipe of GSM8K, with a tiny model and rows of the data set's form."""

import json
from typing import Any

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.util.importing import load_module_file
from tests.helpers.command_line import run_command
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import TEMPLATE, save_model

FILE = ROOT / "recipes" / "gsm8k" / "qwen3.py"
GSM8K: Any = load_module_file(FILE)
COLUMNS = ("prompt", "answer")
ANSWER = "She sold 500 + 580 = <<500+580=1080>>1,080 clips.\n#### 1,080"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model with a chat template, and rows with the columns of GSM8K."""
    chat = {"chat_template": TEMPLATE}
    save_model(tmp_path / "model", "qwen3", tokenizer_options=chat, max_position_embeddings=2048)
    rows = [{"question": f"{i} + 1 =", "answer": f"#### {i + 1}"} for i in range(40)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_dry_run_accepts_the_recipe_with_another_model_and_other_tasks(capsys):
    columns = ", ".join(f"{name}={getattr(GSM8K.GSM8K_COLUMNS, name)!r}" for name in COLUMNS)
    changes = ["--model", "model", "--tasks", f"train.jsonl({columns})"]
    code, printed, error = run_command(capsys)("train", str(FILE), *changes, "--dry-run")
    assert not code, error
    assert 'lora = "Lora(rank=32' in printed
    assert "max_steps = 300" in printed


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (r"500 + 580 = 1080, so \boxed{1080}", 1.0),
        (r"\boxed{1,080}", 1.0),
        (r"\boxed{500}, no: \boxed{1080}", 1.0),
        (r"\boxed{1081}", 0.0),
        ("1080", 0.0),
    ],
)
def test_the_reward_compares_the_last_boxed_number_with_the_final_one(text, reward):
    rollout = Rollout((("", Response((1,), (0.0,), text=text)),))
    assert GSM8K.correct(Task("k", "", ANSWER), rollout) == reward
