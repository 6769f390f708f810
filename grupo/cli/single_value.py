"""Options that have one value are refused when they are given twice, and numbers by their size."""

import inspect
import typing
from collections.abc import Sequence
from typing import Annotated, Any

from annotated_types import Ge, Le
from typer import BadParameter
from typer.core import TyperCommand
from typer.models import OptionInfo

from grupo.core.sizes import check_size
from grupo.util.errors import ConfigError


class SingleValueCommand(TyperCommand):
    """A command that refuses two values for an option that has one, and numbers that are too large.

    Click takes the last of several values, and numbers of any size.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parser: Any = self.make_parser(ctx)
        texts, _, options = parser.parse_args(list(args))  # an option for each occurrence
        for option in options:
            if options.count(option) > 1 and not (option.multiple or option.is_flag):
                raise option_given_twice(option.opts[-1])
        try:
            remaining = super().parse_args(ctx, args)
        except BadParameter as error:
            parameters = inspect.signature(self.callback or self, eval_str=True).parameters
            name = error.param.name if error.param else None
            if name in parameters and name in texts:
                _check_numbers(name, parameters[name].annotation, texts[name])
            raise
        for name, value in ctx.params.items():
            for number in value if isinstance(value, list | tuple) else (value,):
                check_size(name, name, number)
        return remaining


def option_given_twice(option: str) -> ConfigError:
    """The error for an option that has one value and is given two."""
    return ConfigError(f"{option} is given twice and has one value. Leave one of the two out.")


def _check_numbers(name: str, annotation: Any, given: str | Sequence[str]) -> None:
    """Raise `ConfigError` for a text that is no number, or a number that an option does not allow.

    Args:
        name: Name of the option.
        annotation: Its type and what Typer knows of it; one that is no number passes.
        given: The text of the option, or its texts.
    """
    from grupo.core.field_types import describe_type  # they import torch
    from grupo.core.ranges import range_violation

    hint, *remarks = typing.get_args(annotation)
    kind = _number_type(hint)
    if kind is None:
        return
    ranges = [_range(kind, remark) for remark in remarks if isinstance(remark, OptionInfo)]
    for text in [given] if isinstance(given, str) else given:
        try:
            number = kind(text)
        except ValueError as error:
            allowed = describe_type(kind)
            raise ConfigError(f"{name}: {text!r} does not fit. Allowed: {allowed}.") from error
        if allowed := next(filter(None, (range_violation(number, x) for x in ranges)), ""):
            raise ConfigError(f"{name}: {number}. Allowed: {allowed}.")


def _number_type(hint: Any) -> type[int] | type[float] | None:
    """The type of numbers in a type, such as `list[int] | None`."""
    if hint in (int, float):
        return hint
    return next(filter(None, map(_number_type, typing.get_args(hint))), None)


def _range(kind: Any, option: OptionInfo) -> Any:
    """The range of an option as the annotation of a field has it."""
    bounds = [] if option.min is None else [Ge(option.min)]
    bounds += [] if option.max is None else [Le(option.max)]
    return Annotated[kind, *bounds] if bounds else kind
