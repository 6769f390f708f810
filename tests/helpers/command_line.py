"""The command line in the process of a test."""

from collections.abc import Callable

import pytest

from grupo.cli.main import main

Command = Callable[..., tuple[int, str, str]]


def run_command(capsys: pytest.CaptureFixture[str]) -> Command:
    """A function that runs arguments; returns exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = 0
        try:
            main(list(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run
