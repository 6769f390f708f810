"""Tests that run in forked processes are reported like those of one process."""

import re
import subprocess
import sys

import pytest

from tests.helpers.paths import ROOT

TESTS = """
import os

import pytest


@pytest.fixture(scope="module")
def number():
    print("made")
    yield 1
    print("torn down")


@pytest.mark.parametrize("i", range(100))
def test_number(i, number):
    print("value", i)
    assert i != 77


@pytest.mark.skip(reason="no need")
def test_skipped():
    pass


@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    assert 0


def test_process():
    if os.environ.get("END"):
        os._exit(3)
"""
PLUGINS = ["-p", "tests.helpers.forked_workers", "-p", "no:cacheprovider", "-p", "no:xdist"]


def run_pytest(folder, *options, **environment):
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name in ("test_a.py", "test_b.py"):
        (folder / name).write_text(TESTS)
    command = [sys.executable, "-m", "pytest", *PLUGINS, *options]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "", **environment},
        timeout=120,
    )


@pytest.mark.slow
def test_outcomes_are_those_of_one_process(tmp_path):
    results = [run_pytest(tmp_path, "--forks", forks, "-rA") for forks in ("1", "2")]
    outcomes = [
        sorted(re.findall(r"^(?:PASSED|FAILED|SKIPPED|XFAIL) .*$", result.stdout, re.MULTILINE))
        for result in results
    ]
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0]) > 200
    for result in results:
        assert result.returncode == 1
        assert re.search(r"2 failed, 200 passed, 2 skipped, 2 xfailed", result.stdout)
        failure = result.stdout.partition("test_number[77]")[2]
        assert "value 77" in failure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ([], {"END": "1"}, "a process of tests has ended in test_a.py::test_process"),
        (["-x"], {}, "stopping after 1 failures"),
    ],
)
def test_an_end_before_the_last_test_is_reported(tmp_path, options, environment, message):
    result = run_pytest(tmp_path, "--forks", "2", *options, **environment)
    assert result.returncode in (1, 2)
    assert message in result.stdout
