"""Launchers of a sandbox that end before they have started the program, in the middle of a run."""

import re
from contextlib import contextmanager

import pytest

from grupo.core.component import component
from grupo.envs.tools import Sandbox
from grupo.envs.tools.backends.process import LaunchError
from grupo.envs.tools.backends.program import host_python, python_command
from grupo.envs.tools.backends.protocol import MAX_OUTPUT_BYTES, Launch


@component
class ShellScript:
    """A launcher without any boundary, for trusted programs: a script that Python follows."""

    script: str

    def check_machine(self):
        pass

    @contextmanager
    def launch(self, limits, packages=()):
        python = python_command(host_python(), limits, packages)
        yield Launch(("/bin/sh", "-c", f'{self.script}\nexec "$@"', "sh", *python))

    def unavailable_limits(self):
        return ()


def run(script, code="print(1)", **options):
    return Sandbox(backend=ShellScript(script), **options).run(code)


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("echo 'bwrap: no space left' >&2; exit 1", "bwrap: no space left"),
        ("exit 7", "exit code 7"),
        ("exec python3 -c 'raise MemoryError'", "MemoryError"),
    ],
)
def test_the_error_of_a_launcher_is_not_the_output_of_the_program(script, cause):
    message = f"sandbox: ShellScript ended before it started the program: {cause}"
    with pytest.raises(LaunchError, match=f"^{re.escape(message)}$"):
        run(script)


def test_words_of_a_launcher_that_starts_the_program_are_not_its_output():
    assert run("echo 'a warning' >&2") == "1"


@pytest.mark.parametrize("code", ["import os; os._exit(1)", "raise SystemExit(1)", "1 / 0"])
def test_a_program_that_fails_at_once_is_no_launcher_that_failed(code):
    assert run("", code).endswith("(ended with 1)")


def test_a_program_can_print_the_sign_of_its_start_and_as_much_as_the_limit_allows():
    assert run("", "import os; os.write(1, b'a\\2b')") == "a\2b"
    longest = f"print('x' * {MAX_OUTPUT_BYTES}, end='')"
    assert run("", longest, time_limit=30.0) == "x" * MAX_OUTPUT_BYTES


def test_a_launcher_that_hangs_is_stopped_at_the_time_limit():
    assert run("sleep 100", time_limit=0.5) == "(stopped after 0.5 s)"
