"""Options that have one value are refused when they are given twice, and numbers by their size."""

from typing import Any

from typer.core import TyperCommand

from grupo.core.sizes import check_size
from grupo.util.errors import ConfigError


class SingleValueCommand(TyperCommand):
    """A command that refuses two values for an option that has one, and numbers that are too large.

    Click takes the last of several values, and numbers of any size.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options: list[Any]  # one entry per occurrence
        _, _, options = self.make_parser(ctx).parse_args(list(args))
        for option in options:
            if options.count(option) > 1 and not (option.multiple or option.is_flag):
                raise option_given_twice(option.opts[-1])
        remaining = super().parse_args(ctx, args)
        for name, value in ctx.params.items():
            for number in value if isinstance(value, list | tuple) else (value,):
                check_size(name, name, number)
        return remaining


def option_given_twice(option: str) -> ConfigError:
    """The error for an option that has one value and is given two."""
    return ConfigError(f"{option} is given twice and has one value. Leave one of the two out.")
