"""A malformed tokenizer.json ends in one message: no panic, no backtrace, no end of the process."""

import pytest
from tokenizers import Tokenizer

from grupo.models import tokenizer_trial
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.loading import load_tokenizer
from grupo.util.errors import ConfigError
from tests.helpers.fuzzing.tokenizer_json import PANICS, VALID, changed, split, write_model
from tests.helpers.tiny_lm import save_model


@pytest.mark.parametrize("name", PANICS)
def test_a_file_that_ends_or_blocks_the_library_is_one_error(tmp_path, capfd, name):
    folder = write_model(tmp_path / "model", changed(*PANICS[name]))
    with pytest.raises(ConfigError, match=r"tokenizer\.json: .+\. Allowed: a file that"):
        load_tokenizer(str(folder))
    assert capfd.readouterr() == ("", "")


def test_a_valid_file_is_loaded_and_a_vocabulary_without_some_characters_too(tmp_path):
    folder = write_model(tmp_path / "model", VALID)
    assert load_tokenizer(str(folder)).encode("ab c") == [3, 4]
    words = {"type": "WordLevel", "unk_token": "<s>", "vocab": {"a": 0}}
    without_unknown = changed(("model",), {**words, "unk_token": "missing"})
    assert load_tokenizer(str(write_model(tmp_path / "words", without_unknown))).encode("a") == [0]


def test_equal_files_are_tried_once(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(tokenizer_trial, "_trial", lambda file: tried.append(file) or "")
    monkeypatch.setattr(tokenizer_trial, "_problems", {})
    for name in ("a", "b"):
        load_tokenizer(str(save_model(tmp_path / name)))
    assert len(tried) == 1


def test_a_pattern_that_backtracks_in_training_is_one_error(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tokenizer_trial, "_trial", lambda file: "")
    monkeypatch.setattr(tokenizer_trial, "_problems", {})
    folder = write_model(tmp_path / "model", changed(("pre_tokenizer",), split("(a+)+$")))
    tokenizer = ChatTokenizer(load_tokenizer(str(folder)), (0,))
    with pytest.raises(ConfigError, match=r"prompt: 'aaa.* has no tokens of this tokenizer: Onig"):
        tokenizer.encode_text(50 * "a" + "!")


def test_a_panic_while_this_process_loads_is_one_error_without_a_backtrace(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(tokenizer_trial, "_trial", lambda file: "")
    monkeypatch.setattr(tokenizer_trial, "_problems", {})
    path = PANICS["prefix of every merge"]
    folder = write_model(tmp_path / "model", changed(*path))
    with pytest.raises(BaseException, match="slice index"):
        Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert "panicked" in capfd.readouterr().err
    with pytest.raises(ConfigError, match="has no tokenizer that loads"):
        load_tokenizer(str(folder))
    assert capfd.readouterr().err == ""
