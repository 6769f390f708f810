"""Fuzzing of every parser of untrusted text, files and replies: nothing but our errors."""

import pytest

from tests.helpers.fuzz_targets import FILE_TARGETS, TARGETS, fuzz
from tests.helpers.trust_cases import SEED, scaled

pytestmark = pytest.mark.trust

NUM_EXAMPLES = 1_000_000


@pytest.mark.parametrize("name", TARGETS)
def test_a_million_texts_raise_our_errors_only(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of files are looked up in a folder without any
    fuzz(TARGETS[name], scaled(NUM_EXAMPLES // len(TARGETS)), SEED)


@pytest.mark.parametrize("name", FILE_TARGETS)
def test_9_900_files_and_replies_raise_our_errors_only(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fuzz(FILE_TARGETS[name], scaled(FILE_TARGETS[name].cases), SEED)
