"""Methods from text: of the library by name, of a file by address."""

import inspect
from importlib import import_module

import pytest

from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.methods.dapo import dapo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.grpo import grpo
from grupo.util.errors import ConfigError
from tests.helpers.component_fields import takes_floats, takes_whole_numbers

FILE = """
from grupo.method import Method
from grupo.algo.losses import Clip

mine = Method(loss=Clip(0.1, 0.1))


def custom(limit: int, clip: float = 0.5, *, names: tuple[str, ...] = ()) -> Method:
    return Method(loss=Clip(clip, limit))


def number() -> int:
    return 7
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my_methods.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("grpo", grpo()),
        ("grpo()", grpo()),
        ("grpo(kl_coef=0)", grpo(kl_coef=0)),
        ("grpo(4, 0.1)", grpo(4, 0.1)),
        (" dapo(max_length = 64, overlong_buffer=16) ", dapo(64, 16)),
        ("dr_grpo(2, clip_eps=0.3)", dr_grpo(2, clip_eps=0.3)),
    ],
)
def test_text_is_parsed_into_a_method_of_the_library(text, method):
    assert parse_method(text) == method


def test_text_is_parsed_into_a_method_of_a_file(file):
    assert repr(parse_method(f"{file}:mine").loss) == "Clip(clip_low=0.1, clip_high=0.1)"
    assert repr(parse_method(f"{file}:custom(limit=3)").loss) == "Clip(clip_low=0.5, clip_high=3)"
    assert (
        repr(parse_method(f"{file}:custom(3, names=('a:b',))").loss)
        == "Clip(clip_low=0.5, clip_high=3)"
    )
    assert parse_method(f"{file}:mine") == parse_method(f"{file}:mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drgrpo", r"there is no 'drgrpo'. Did you mean 'dr_grpo'\? Allowed: a_grae, ace, .*…"),
        ("gspo(clip_low=-0.1)", "gspo: clip_low: -0.1. Allowed: 0 or more"),
        ("grpo(kl_coef=1e400)", "grpo: kl_coef: inf. Allowed: finite numbers"),
        ("grpo(0)", "grpo: group_size: 0. Allowed: 1 or more"),
        ("clip_cov(drop_fraction=1.5)", "clip_cov: drop_fraction: 1.5. Allowed: 0 to 1"),
        (
            "gdpo(reward_weights=(1.0, -1.0))",
            r"gdpo: reward_weights: \(1.0, -1.0\). Allowed: 0 or more",
        ),
        ("dr_grpo", r"dr_grpo: max_length must be given: dr_grpo\(max_length=\.\.\.\)"),
        ("dapo(64)", r"dapo: overlong_buffer must be given"),
        (
            "dr_grpo(max_lenght=3)",
            r"no argument 'max_lenght'. Did you mean 'max_length'\? Allowed: cl",
        ),
        ("dr_grpo(max_length='3')", "dr_grpo: max_length: '3'. Allowed: a whole number"),
        ("dr_grpo(max_length=3.5)", "dr_grpo: max_length: 3.5. Allowed: a whole number"),
        ("dr_grpo(max_length=True)", "dr_grpo: max_length: True. Allowed: a whole number"),
        ("grpo(1, 2, 3, 4)", "grpo: 4 arguments given. Allowed: group_size, clip_eps, kl_coef"),
        ("grpo(1, group_size=2)", "grpo: 'group_size' is given twice"),
        (
            "grpo(kl_coef=print(1))",
            r"grpo: kl_coef is 'print\(1\)'; numbers, strings and tuples are allowed",
        ),
        ("grpo(**{'kl': 1})", r"grpo: there is no argument '\*\*'"),
        ("grpo(*[1])", r"grpo's argument 1 is '\*\[1\]'"),
        ("grpo(kl_coef=", "cannot read 'grpo"),
        ("", "cannot read ''"),
        ("grpo.x", "neither a name nor name"),
        ("a:b", "cannot read 'a:b'. Allowed: name, name"),
        ("no/such.py:mine", "There is no file"),
    ],
)
def test_text_that_describes_no_method_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_method(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("mime", r"has no 'mime'. Did you mean 'mine'\? Allowed: custom, mine, number"),
        ("mine(1)", "'mine' in .* of type Method, not a function"),
        ("number", r"'number' must return a Method; it returned 7, of type int"),
        ("custom", r"limit must be given"),
        ("custom(1, 2.0, ('a',))", "3 arguments given. Allowed: limit, clip"),
        (
            "custom(1, names=(1,))",
            r"names: \(1,\). Allowed: a tuple \(…,\) of which each is a string",
        ),
    ],
)
def test_a_file_without_such_a_method_is_refused(file, call, message):
    with pytest.raises(ConfigError, match=message):
        parse_method(f"{file}:{call}")


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_number_among_the_arguments_of_a_method_is_limited(entry):
    name = entry.example.partition("(")[0]
    function = getattr(import_module(f"grupo.methods.{name}"), name)
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    required = [p for p in parameters if p.default is p.empty]
    for parameter in parameters:
        whole = takes_whole_numbers(parameter.annotation)
        if whole or takes_floats(parameter.annotation):
            value = 10**18 if whole else 1e300
            given = {p.name: 1 for p in required} | {parameter.name: value}
            arguments = ", ".join(f"{k}={v!r}" for k, v in given.items())
            refused = rf"^{name}: {parameter.name}: \S+\. Allowed: "
            with pytest.raises(ConfigError, match=refused):
                parse_method(f"{name}({arguments})")
