"""The folder of a new user: models, tables, rewards, methods, recipes and a run."""

import json
import sys
from pathlib import Path

import pytest

from grupo.cli.main import main
from tests.first_hour.user_folder import FILES, write_tables
from tests.helpers.command_line import Command, run_command
from tests.helpers.tiny_lm import TEMPLATE, save_model

CHAT = {"chat_template": TEMPLATE}
# it ignores add_generation_prompt, and ends messages with a token that ends no answer
MARKED = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|user|>{% endfor %}"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the mistakes are about."""
    folder = tmp_path_factory.mktemp("first_hour")
    save_model(folder / "model", "qwen3", tokenizer_options=CHAT, max_position_embeddings=256)
    save_model(folder / "plain", "llama", max_position_embeddings=256)  # without a chat template
    marked = {"chat_template": MARKED}
    save_model(folder / "marked", "qwen3", tokenizer_options=marked, max_position_embeddings=256)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write_tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit) as end:
            main(["train", "recipe.py", "--run", "run"])
    assert not end.value.code
    adapters = {"base_model_name_or_path": "missing/base", "peft_type": "LORA", "r": 4}
    (folder / "adapters").mkdir()
    (folder / "adapters" / "adapter_config.json").write_text(json.dumps(adapters))
    return folder


@pytest.fixture
def grupo(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Command:
    """Run a command line in the folder; returns exit code, standard output and standard error."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(folder)
    for path in folder.glob("*.py"):  # other tests have files of these names, too
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return run_command(capsys)
