"""Shares of work for several processes, such as 1/2 and 2/2."""

from grupo.util.errors import ConfigError


def parse_share(text: str) -> tuple[int, int]:
    """A part, counted from 1, and the number of parts.

    >>> parse_share("1/2")
    (1, 2)

    Raises:
        ConfigError: The text is no such fraction, or the part is above the number of parts.
    """
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ConfigError(f"--share: {text!r}. Allowed: a part and their number, such as 1/2.")
    return int(number), int(count)
