"""Every parser of untrusted text raises our errors only, whatever the text."""

import pytest

from tests.helpers.fuzz_targets import TARGETS, Target, fuzz

NUM_EXAMPLES = 2_000


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Names of files are looked up in a folder without any."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_arbitrary_text_raises_our_errors_only(name):
    assert fuzz(TARGETS[name], NUM_EXAMPLES // len(TARGETS), 0) > 0


@pytest.mark.parametrize("name", ["rows", "recipes", "answers"])
def test_planted_error_of_a_parser_is_noticed(name):
    def planted(example):
        if len(str(example)) > 10:
            raise KeyError(example)

    with pytest.raises(KeyError):
        fuzz(Target(planted, TARGETS[name].inputs), 200, 0)
