"""A malformed tokenizer.json ends in one message: no panic, no backtrace, no end of the process."""

import subprocess
import sys

import pytest
from tokenizers import Tokenizer

from grupo.core.types import Rollout
from grupo.models import tokenizer_trial
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.loading import load_tokenizer
from grupo.util.errors import ConfigError
from tests.helpers.fuzzing.tokenizer_json import (
    PANICS,
    TOKENIZER_CONFIG,
    VALID,
    changed,
    split,
    write_model,
)
from tests.helpers.resource_use import limited_peak
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


def test_a_length_that_is_no_number_is_refused_with_its_field(tmp_path):
    options = {**TOKENIZER_CONFIG, "model_max_length": {"a": 1}}
    folder = write_model(tmp_path / "model", VALID, options)
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json: model_max_length: .*Allowed"):
        load_tokenizer(str(folder))


@pytest.mark.parametrize(
    "template",
    [
        "{{ 1 / 0 }}",
        "{{ 2.0 ** 99999 }}",
        r"{{ '\ud800' }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        r"{{ raise_exception('line\n' * 10000) }}",
    ],
)
def test_any_error_of_a_chat_template_is_one_error(tmp_path, template):
    options = {**TOKENIZER_CONFIG, "chat_template": template}
    folder = write_model(tmp_path / "model", VALID, options)
    tokenizer = ChatTokenizer(load_tokenizer(str(folder)), (0,))
    with pytest.raises(ConfigError, match="the chat template rejects messages of user: ") as raised:
        tokenizer.encode_observation(Rollout(), ({"role": "user", "content": "a"},))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_process_with_a_lower_limit_of_memory_tries_files_too(tmp_path):
    folder = write_model(tmp_path / "model", VALID)
    program = tokenizer_trial.tokenizer_trial_program.__file__
    trial = (sys.executable, "-P", program, f"{folder}/tokenizer.json", "60")
    command = ["/bin/sh", "-c", 'ulimit -v 8000000; exec "$@"', "sh", *trial]
    output = subprocess.run(command, capture_output=True, check=True).stdout
    assert output.splitlines()[-1] == b'{"problem": ""}'


LOOPS = "{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3
TEMPLATES = {
    "loops": (LOOPS, "takes more than 0.2 s"),
    "loops for tools": ("{% if tools %}" + LOOPS + "{% endif %}{{ messages }}", "takes more than"),
    "repeats": ("{{ messages[0].content * 10**8 }}", "100,000,000 characters"),
    "repeats without end": ("{{ messages[0].content * 10**11 }}", "memory"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_chat_template_that_does_not_end_or_expands_is_one_error_that_names_the_model(
    tmp_path, monkeypatch, name
):
    monkeypatch.setattr(tokenizer_trial, "RENDER_SECONDS", 0.2)
    template, problem = TEMPLATES[name]
    folder = write_model(tmp_path / "model", VALID, {**TOKENIZER_CONFIG, "chat_template": template})
    tokenizer = ChatTokenizer(load_tokenizer(str(folder)), (0,))
    tools = [{"type": "function", "function": {"name": "add"}}]
    with limited_peak(2**26), pytest.raises(ConfigError, match=r"^model: .*/model': ") as caught:
        tokenizer.encode_observation(Rollout(), ({"role": "user", "content": "a"},), tools)
    assert problem in str(caught.value)


def test_each_kind_of_rendering_of_a_template_is_tried_once(tmp_path, monkeypatch):
    tried = []
    monkeypatch.setattr(
        tokenizer_trial, "_template_trial", lambda *given: tried.append(given) or ""
    )
    monkeypatch.setattr(tokenizer_trial, "_template_problems", {})
    options = {**TOKENIZER_CONFIG, "chat_template": "a{% for m in messages %}b{% endfor %}"}
    folder = write_model(tmp_path / "model", VALID, options)
    tokenizer = ChatTokenizer(load_tokenizer(str(folder)), (0,))
    for role, count in (("user", 1), ("user", 2), ("user", 1)):
        tokenizer.encode_observation(Rollout(), ({"role": role, "content": "a"},) * count)
    assert len(tried) == 1
    with pytest.raises(ConfigError, match="cannot continue the last message"):
        tokenizer.encode_observation(Rollout(), ({"role": "assistant", "content": "a"},))
    assert len(tried) == 2
