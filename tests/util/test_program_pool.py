"""Processes that are killed at the time limit of a request."""

import time

import pytest

from grupo.util.program_pool import ProgramError, ProgramPool, ProgramStartError

PROGRAM = """
import json, os, sys, time
print("ready", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("exit"):
        os._exit(3)
    time.sleep(request.get("sleep", 0))
    print(json.dumps({"pid": os.getpid()}), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


def test_a_process_answers_one_request_after_another(program):
    pool = ProgramPool(program, 2)
    assert pool.call({}, 20.0) == pool.call({}, 1e9)


def test_a_process_is_killed_at_the_time_limit_and_another_answers(program):
    pool = ProgramPool(program, 1)
    first = pool.call({}, 20.0)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"was killed after 0\.1 s"):
        pool.call({"sleep": 100}, 0.1)
    assert time.monotonic() - start < 5
    assert pool.call({}, 20.0) != first


def test_a_process_that_ends_is_an_error_and_another_answers(program):
    pool = ProgramPool(program, 1)
    with pytest.raises(ProgramError, match="ended the process"):
        pool.call({"exit": True}, 20.0)
    assert set(pool.call({}, 20.0)) == {"pid"}


def test_a_program_that_does_not_start_is_an_error(tmp_path):
    with pytest.raises(ProgramStartError, match=r"gone\.py: ended the process"):
        ProgramPool(tmp_path / "gone.py", 1).call({}, 20.0)
