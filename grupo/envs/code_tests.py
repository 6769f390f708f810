"""Programs that the policy writes, scored by unit tests in the sandbox.

The program never shares a process with the expected outputs: the sandbox gets the program and one
input, and the output is compared outside of the sandbox. Exit codes and reports decide nothing.
"""

import ast
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grupo.core.component import component
from grupo.core.extract_answer import AfterThinking, Extractor
from grupo.core.ranges import NonEmptyString
from grupo.core.types import Task
from grupo.envs.program_reward import ProgramReward
from grupo.envs.tools.sandbox import Sandbox
from grupo.rewards.instruction_following import share_met
from grupo.util.errors import ConfigError
from grupo.util.fenced_blocks import fenced_blocks
from grupo.util.json_text import parse_json

# the program's standard input is a file, so that sys.stdin, open(0) and os.read(0, …) read it
WITH_INPUT = """\
import os, sys, tempfile
_file = tempfile.TemporaryFile()
_file.write({data!r})
_file.seek(0)
os.dup2(_file.fileno(), 0)
sys.stdin = open(0, encoding="utf-8", closefd=False)
exec(compile({program!r}, "<program>", "exec"), {{"__name__": "__main__"}})
"""
WITH_CALL = """\
_names = {{"__name__": "program"}}
exec(compile({program!r}, "<program>", "exec"), _names)
_value = eval({call!r}, _names)
print("\\n" + {marker!r} + repr(_value))
"""

# of a value, beyond four times the expected one: a megabyte of literals takes 480 MiB to parse
MAX_VALUE_CHARS = 1 << 16


def last_code_block(text: str) -> str | None:
    r"""The program in the last block of Python code, or the whole text if it has no block.

    >>> last_code_block("So:\n```python\nprint(1)\n```\nDone.")
    'print(1)\n'
    """
    blocks = fenced_blocks(text, ("python", "py"))
    if blocks:
        return blocks[-1]
    return None if "```" in text else text


@dataclass(frozen=True)
class InputCase:
    """A standard input and the output that it must produce.

    Args:
        data: The input.
        output: The output; white space at the ends of lines and of the output is ignored.
    """

    data: str
    output: str

    def passes(self, program: str, sandbox: Sandbox) -> bool:
        """True if the program prints the output."""
        code = WITH_INPUT.format(data=self.data.encode(), program=program)
        return stripped_lines(sandbox.run(code)) == stripped_lines(self.output)


@dataclass(frozen=True)
class CallCase:
    """A call and the value that it must return.

    Args:
        call: Source of the call.
        value: The value, of literals.
        is_truth: True if the value's truth is compared, as by `assert f(x)` and `assert not f(x)`.
    """

    call: str
    value: Any
    is_truth: bool = False

    def passes(self, program: str, sandbox: Sandbox) -> bool:
        """True if the call returns the value: data that are equal, no object of the program's."""
        marker = secrets.token_hex(8)
        output = sandbox.run(WITH_CALL.format(program=program, call=self.call, marker=marker))
        _, found, shown = output.rpartition(f"\n{marker}")
        if not found or len(shown) > MAX_VALUE_CHARS + 4 * len(repr(self.value)):
            return False
        try:
            value = ast.literal_eval(shown)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return False
        return bool(value) == self.value if self.is_truth else _same(value, self.value)


@component
class CodeTests(ProgramReward):
    """The share of a task's tests that the program passes, from 0 to 1.

    The column has {"inputs": […], "outputs": […]} for programs that read standard input, or a list
    of assertions: `assert f(1) == 2`, `assert f(1) is None`, `assert f(1)`, `assert not f(1)`.
    Every test is a process of its own in the sandbox, with the sandbox's time limit; the process
    has the program and the input of this test, but no expected value and no other test.

    A program that knows the tests can pass them, so keep them out of the prompt.

    Args:
        sandbox: Runs the programs; its limits are those of each test.
        column: Column of the tests, or its JSON text.
        extract: Finds the program in the rollout's text; no program passes no test.
        combine: From a bool for each test to the score: `share_met` or `all_met`.
    """

    sandbox: Sandbox = Sandbox()
    column: NonEmptyString = "tests"
    extract: Extractor = AfterThinking(last_code_block)  # pyrefly: ignore[bad-override]
    combine: Callable[[Sequence[bool]], float] = share_met

    def score_program(self, task: Task, program: str) -> float:
        cases = task_cases(task, self.column)
        return self.combine([case.passes(program, self.sandbox) for case in cases])

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without tests, or with tests of another form."""
        for task in tasks:
            task_cases(task, self.column)


def task_cases(task: Task, column: str) -> Sequence[InputCase | CallCase]:
    """The tests of a task, at least one.

    Raises:
        ConfigError: The task has no such column, or tests of another form.
    """
    place = f"tasks: {task.location or task.key}, column {column!r}"
    tests = task.columns.get(column)
    try:
        parsed = parse_json(tests) if isinstance(tests, str) else tests
        if isinstance(parsed, Mapping):
            return _input_cases(parsed["inputs"], parsed["outputs"])
        if not isinstance(parsed, list) or not parsed:
            raise ValueError(str(tests)[:80])
        return [_call_case(str(test)) for test in parsed]
    except (KeyError, TypeError, ValueError, SyntaxError) as error:
        raise ConfigError(
            f"{place}: {error}. Allowed: inputs and outputs, as many of both, or a list of"
            " assertions that compare a call with a literal: assert f(1) == 2."
        ) from error


def _input_cases(inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[InputCase]:
    if not inputs or len(inputs) != len(outputs):
        raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs")
    return [InputCase(str(data), str(out)) for data, out in zip(inputs, outputs, strict=True)]


def _call_case(source: str) -> CallCase:
    """The case of an assertion; raises `ValueError` for one of another form."""
    statements = ast.parse(source.strip()).body
    if len(statements) != 1 or not isinstance(statements[0], ast.Assert):
        raise ValueError(f"{source[:80]!r} is no assertion")
    test = statements[0].test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if not isinstance(test.ops[0], ast.Eq | ast.Is):
            raise ValueError(f"{source[:80]!r} has another comparison than == and is")
        return CallCase(ast.unparse(test.left), ast.literal_eval(test.comparators[0]))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return CallCase(ast.unparse(test.operand), False, is_truth=True)
    if not isinstance(test, ast.Call):
        raise ValueError(f"{source[:80]!r} has no call")
    return CallCase(ast.unparse(test), True, is_truth=True)


def _same(value: Any, expected: Any) -> bool:
    """True if the values are equal; True is not 1."""
    return value == expected and isinstance(value, bool) == isinstance(expected, bool)


def stripped_lines(text: str) -> list[str]:
    """The lines of an output without the white space at their ends and at the end of the text."""
    return [line.rstrip() for line in text.rstrip().split("\n")]
