"""Every parser of untrusted text, files and replies raises our errors only, whatever they are."""

import time

import pytest

from tests.helpers.fuzz_targets import FILE_TARGETS, TARGETS, Target, fuzz
from tests.helpers.fuzzing.target import Endless, checked_parse

NUM_EXAMPLES = 2_000
FAST_SHARE = 60  # of the cases of the long test, one in so many


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Names of files are looked up in a folder without any."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_arbitrary_text_raises_our_errors_only(name):
    assert fuzz(TARGETS[name], NUM_EXAMPLES // len(TARGETS), 0) > 0


@pytest.mark.parametrize("name", FILE_TARGETS)
def test_arbitrary_files_and_replies_raise_our_errors_only(name):
    target = FILE_TARGETS[name]
    fuzz(target, target.cases // FAST_SHARE, 0)


@pytest.mark.parametrize("name", ["rows", "recipes", "answers", *FILE_TARGETS])
def test_planted_error_of_a_parser_is_noticed(name):
    def planted(example):
        if len(str(example)) > 10:
            raise KeyError(example)

    with pytest.raises(KeyError):
        fuzz(Target(planted, (TARGETS | FILE_TARGETS)[name].inputs), 200, 0)


@pytest.mark.slow
def test_a_planted_loop_and_a_planted_wait_are_noticed():
    def loop(example):
        begin = time.process_time()
        while time.process_time() < begin + 0.1:
            pass

    target = FILE_TARGETS["judges"]
    with pytest.raises(AssertionError, match=r"0\.\d s for"):
        fuzz(Target(loop, target.inputs, seconds=0.05), 1, 0)
    with pytest.raises(Endless):
        checked_parse(Target(lambda example: time.sleep(30), target.inputs), "", 0.1)
