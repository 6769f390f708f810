"""Loading and exporting a model prints nothing and leaves transformers' settings as they were."""

from collections.abc import Iterator
from logging import INFO
from pathlib import Path

import pytest
import torch
from transformers.utils import logging

from grupo.models import loading
from grupo.models.causal_lm import CausalLM
from grupo.util.errors import ConfigError
from tests.helpers.recurrent_model import save_random_model
from tests.helpers.tiny_lm import FAMILIES


@pytest.fixture
def verbose_transformers() -> Iterator[None]:
    """transformers logs everything and shows progress bars."""
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    yield
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (INFO, True)
    logging.set_verbosity(before[0])
    if not before[1]:
        logging.disable_progress_bar()


@pytest.mark.usefixtures("verbose_transformers")
def test_loading_and_exporting_print_nothing_and_restore_the_verbosity(tmp_path: Path, capfd):
    folder = save_random_model(tmp_path / "model", FAMILIES["llama"]())
    capfd.readouterr()
    CausalLM(folder, device="cpu", max_new_tokens=8).build().export(tmp_path / "export")
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("verbose_transformers")
def test_a_failed_load_restores_the_verbosity(tmp_path: Path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError):
        loading.load(str(tmp_path), torch.float32, torch.device("cpu"))
