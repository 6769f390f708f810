"""A model that is nowhere is refused at once if the hub does not answer."""

import pytest
from huggingface_hub import constants

from grupo.models.hub import check_hub_answers
from grupo.models.loading import load_config, load_tokenizer
from grupo.util.errors import ConfigError


@pytest.fixture
def unreachable(monkeypatch, tmp_path):
    """A hub at a port of this machine where nothing listens, and an empty folder to work in."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("load", [check_hub_answers, load_config, load_tokenizer])
def test_an_unreachable_hub_is_named_and_the_model(unreachable, load):
    message = r"model: 'owner/model' is no folder.*http://127\.0\.0\.1:9 does not answer"
    with pytest.raises(ConfigError, match=message):
        load("owner/model")


@pytest.mark.parametrize(("name", "file"), [("sums", "recipe.json"), ("model", "config.json")])
def test_the_nearest_run_or_model_of_the_folder_is_named(unreachable, name, file):
    (unreachable / name).mkdir()
    (unreachable / name / file).touch()
    with pytest.raises(ConfigError, match=f"Did you mean '{name}'"):
        check_hub_answers(f"{name}z")


def test_the_nearest_gguf_file_is_named(unreachable):
    (unreachable / "tiny.gguf").touch()
    with pytest.raises(ConfigError, match=r"Did you mean 'tiny\.gguf'"):
        check_hub_answers("tiny.guf")


def test_offline_mode_is_named(unreachable, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE is set"):
        check_hub_answers("owner/model")


def test_a_folder_passes(unreachable):
    (unreachable / "model").mkdir()
    check_hub_answers("model")


def test_a_model_in_the_cache_passes(unreachable, monkeypatch):
    monkeypatch.setattr("grupo.models.hub.try_to_load_from_cache", lambda *_: "a file")
    check_hub_answers("owner/model")
