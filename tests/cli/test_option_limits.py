"""Numbers among the options of every command are limited."""

import inspect
import re
import time
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from grupo.cli.main import app
from tests.helpers.command_line import run_command

HUGE = {int: str(10**18), float: "1e300"}
SECONDS = 1.0  # of processor time, once a command has imported what it needs
NO_LIMIT = {"make-toy-model --seed": str(2**64)}  # 10^18 is a seed


@dataclass(frozen=True)
class NumericOption:
    """An option of a command that is a number.

    Args:
        words: The words of the command.
        parameters: All parameters of the command, by name.
        name: The parameter.
        kind: `int` or `float`.
    """

    words: tuple[str, ...]
    parameters: Mapping[str, inspect.Parameter]
    name: str
    kind: type

    def __str__(self) -> str:
        return f"{' '.join(self.words)} {flag(self.name)}"

    def arguments(self, folder: str, value: str) -> list[str]:
        """A command line with the required arguments and this option."""
        required = [p for p in self.parameters.values() if p.default is p.empty]
        given = [
            text
            for p in required
            if p.annotation is not typer.Context
            for text in ([flag(p.name), "x"] if is_option(p) else [folder])
        ]
        return [*self.words, *given, flag(self.name), value]


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def is_option(parameter: inspect.Parameter) -> bool:
    remarks = typing.get_args(parameter.annotation)[1:]
    return any(isinstance(remark, typer.models.OptionInfo) for remark in remarks)


def numeric_options(group: typer.Typer, words: tuple[str, ...] = ()) -> Iterator[NumericOption]:
    """The options of all commands of a group that are numbers, or lists of them."""
    for info in group.registered_commands:
        assert info.callback
        name = info.name or info.callback.__name__
        parameters = inspect.signature(info.callback, eval_str=True).parameters
        for parameter in parameters.values():
            kinds = set(HUGE) & set(parts(parameter.annotation))
            if kinds and is_option(parameter):
                yield NumericOption((*words, name), parameters, parameter.name, kinds.pop())
    for inner in group.registered_groups:
        assert inner.typer_instance
        yield from numeric_options(inner.typer_instance, (*words, str(inner.name)))


def parts(hint: Any) -> Iterator[Any]:
    """A type and the types inside it."""
    yield hint
    for argument in typing.get_args(hint):
        yield from parts(argument)


@pytest.fixture
def run(capsys):
    return run_command(capsys)


OPTIONS = list(numeric_options(app))


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_number_among_the_options_is_limited(option, run, tmp_path):
    value = NO_LIMIT.get(str(option), HUGE[option.kind])
    run(*option.arguments(str(tmp_path), value))  # imports what the command needs
    begin = time.process_time()
    code, out, err = run(*option.arguments(str(tmp_path), value))
    assert time.process_time() - begin < SECONDS
    assert (code, out) == (2, "")
    assert re.search(rf"{option.name}: .*\. Allowed: (at most|\d+ to) [\d^,]+", err)


@pytest.mark.parametrize("option", OPTIONS, ids=str)
@pytest.mark.parametrize("value", ["abc", "-1x", ""])
def test_a_text_for_a_number_is_refused_with_what_is_allowed(option, value, run, tmp_path):
    code, out, err = run(*option.arguments(str(tmp_path), value))
    number = "a whole number" if option.kind is int else "a number"
    assert (code, out) == (2, "")
    assert err == f"grupo: {option.name}: {value!r} does not fit. Allowed: {number}.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["watch", "--port", "99999"], "port: 99999. Allowed: 0 to 65535."),
        (["watch", "--port", "-1"], "port: -1. Allowed: 0 to 65535."),
        (["rollouts", "--limit", "-1"], "limit: -1. Allowed: 1 to 1000000000."),
        (["rollouts", "--best", "-1"], "best: -1. Allowed: 0 or more."),
        (["rollouts", "--limit=1.5"], "limit: '1.5' does not fit. Allowed: a whole number."),
        (["simulate", "--trainers", "2", "--trainers", "x"], "trainers: 'x' does not fit. Allowed"),
    ],
)
def test_a_number_out_of_range_is_refused_with_what_is_allowed(arguments, message, run, tmp_path):
    command, *options = arguments
    code, out, err = run(command, str(tmp_path), *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"grupo: {message}")


def test_options_of_all_commands_are_found():
    expected = {"train --ranks", "compare --threads", "launch slurm --nodes"}
    assert expected <= set(map(str, OPTIONS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompts-per-step", str(10**18)], "prompts_per_step: 1000000000000000000. Allowed: at"),
        (["--prompts-per-step", str(10**8)], "prompts_per_step: 100000000. Allowed: at most"),
        (["--eval-tasks", str(10**18)], "eval_tasks: 1000000000000000000. Allowed: at most"),
        (["--epochs", "1e300"], "epochs: 1e+300. Allowed: at most"),
        (["--method", f"grpo(group_size={10**18})"], "group_size: 1000000000000000000"),
    ],
)
def test_numbers_of_a_recipe_on_the_command_line_are_limited(arguments, message, run):
    code, _, err = run("train", "--dry-run", *arguments)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--budget", f"tokens={10**18}"],
        ["--budget", f"steps={10**18}"],
        ["--budget", f"updates={10**18}"],
        ["--budget", "seconds=1" + 300 * "0"],
        ["--budget", "steps=1", "--seeds", str(10**18)],
        ["--budget", "steps=1", "--sequential", f"SequentialDesign(max_pairs={10**18})"],
    ],
)
def test_numbers_of_a_comparison_are_limited(arguments, run, tmp_path):
    methods = ["--method", "grpo", "--method", "rloo"]
    command = ["compare", *methods, *arguments, "--out", str(tmp_path / "out")]
    run(*command)  # imports what the command needs
    begin = time.process_time()
    code, _, err = run(*command)
    assert time.process_time() - begin < SECONDS
    assert code == 2
    assert "Allowed: at most" in err
