"""Fuzzing of every parser of untrusted text: nothing but our errors.

`TRUST_SHARE` of a million examples in all; `TRUST_SEED` chooses others.
"""

import os

import hypothesis
import pytest
from hypothesis import HealthCheck, given

from tests.helpers.fuzz_targets import TARGETS, Target

ALL_EXAMPLES = 1_000_000
FAST_EXAMPLES = 2_000
SHARE = float(os.environ.get("TRUST_SHARE", "1"))
SEED = int(os.environ.get("TRUST_SEED", "0"))


def fuzz(target: Target, count: int, seed: int) -> int:
    """Parse `count` examples; returns how many were accepted."""
    accepted = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    @given(target.inputs)
    def parse(example):
        nonlocal accepted
        try:
            target.parse(example)
            accepted += 1
        except target.errors as error:
            str(error)

    parse()
    return accepted


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Names of files are looked up in a folder without any."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_arbitrary_text_raises_our_errors_only(name):
    accepted = fuzz(TARGETS[name], FAST_EXAMPLES // len(TARGETS), 0)
    assert accepted > 0


@pytest.mark.trust
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_texts_raise_our_errors_only(name):
    fuzz(TARGETS[name], max(1, int(SHARE * ALL_EXAMPLES / len(TARGETS))), SEED)


@pytest.mark.parametrize("name", ["rows", "recipes", "answers"])
def test_planted_error_of_a_parser_is_noticed(name):
    def planted(example):
        if len(str(example)) > 10:
            raise KeyError(example)

    with pytest.raises(KeyError):
        fuzz(Target(planted, TARGETS[name].inputs), 200, 0)
