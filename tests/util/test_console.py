"""The end of a command whose output is no longer read."""

import os
import subprocess
import sys

import pytest

from grupo.util.exit_codes import EXIT_BROKEN_PIPE
from tests.helpers.paths import CHILD_ENV
from tests.helpers.user_code import RECIPE, REWARDS
from tests.helpers.user_inputs import tiny_model, write_tasks

PRINT = "from grupo.util.console import print_line\nwhile True: print_line('a line')"


def ended_after_the_first_line(*command, **options):
    """The exit code and the errors of a command of whose output one line is read."""
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, **CHILD_ENV, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    assert process.stdout
    assert process.stderr
    with process:
        assert process.stdout.readline()
        process.stdout.close()
        return process.wait(), process.stderr.read()


def test_a_command_ends_without_a_message_when_its_reader_has_ended():
    assert ended_after_the_first_line("-c", PRINT) == (EXIT_BROKEN_PIPE, "")


@pytest.mark.slow
def test_a_run_ends_with_the_command_that_resumes_it(tmp_path):
    (tmp_path / "recipe.py").write_text(RECIPE)
    (tmp_path / "rewards.py").write_text(REWARDS)
    tiny_model(tmp_path / "model")
    write_tasks(tmp_path)
    arguments = ("recipe.py", "--steps", "10000", "--run", "run", "--eval-tasks", "0")
    code, errors = ended_after_the_first_line("-m", "grupo", "train", *arguments, cwd=tmp_path)
    assert code == EXIT_BROKEN_PIPE
    assert errors.startswith("`grupo resume run` continues ")
    assert "Traceback" not in errors
