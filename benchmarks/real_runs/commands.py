"""Commands of grupo, executed as processes of their own."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUMS = "recipes/real/two_digit_sums.py:RECIPE"
VARIANTS = "recipes/real/sum_variants.py"
PROGRAM = (sys.executable, "-m", "grupo")
VLLM_PYTHON = "VLLM_PYTHON"  # environment variable: the interpreter of an environment with vLLM
KIB = 1024


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Args:
        output: Its output.
        seconds: Its duration.
        peak: The largest resident memory of it or a child of it, in bytes.
    """

    output: str
    seconds: float
    peak: int


def execute(arguments: Sequence[str], log: Path, expected: Sequence[int] = (0,)) -> Finished:
    """Run a command of grupo to its end.

    Args:
        arguments: Arguments of grupo.
        log: File of the output.
        expected: Exit codes that are no failure.

    Raises:
        RuntimeError: It failed.
    """
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen([*PROGRAM, *map(filled, arguments)], stdout=file, stderr=file)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    output = log.read_text(encoding="utf-8")
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expected:
        raise RuntimeError(
            f"{as_typed(arguments)}: exit code {process.returncode}\n{output[-2000:]}"
        )
    return Finished(output, seconds, usage.ru_maxrss * KIB)


def train_as_typed(arguments: Sequence[str]) -> str:
    """`grupo train` with arguments, as a user types it."""
    return as_typed(("train", *arguments, "--run", "RUN"))


def train(arguments: Sequence[str], run: Path) -> Finished:
    """`grupo train` with arguments, into the folder of a run; its output is in a file beside it."""
    return execute(["train", *arguments, "--run", str(run)], run.with_suffix(".log"))


def filled(argument: str) -> str:
    """The argument with this machine's path of vLLM's interpreter in the place of its name."""
    return argument.replace(VLLM_PYTHON, os.environ.get(VLLM_PYTHON, VLLM_PYTHON))


def as_typed(arguments: Sequence[str]) -> str:
    """A command as a user types it."""
    return shlex.join(("grupo", *arguments))


def steps_of(run: Path) -> list[Mapping[str, Any]]:
    """The metrics of each step of a run."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def summary_of(run: Path) -> Mapping[str, Any]:
    """The summary of a run that has ended."""
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))
