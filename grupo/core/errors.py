"""What a user gets to read when something given cannot be used."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 40  # names in a message; more would bury it


class ConfigError(ValueError):
    """Input that cannot be used: what was given, what is allowed, the nearest right spelling."""


class MissingSignalError(KeyError):
    """A signal, a part or a column was asked for that nobody measured."""

    def __str__(self) -> str:
        return str(self.args[0])


def suggest(name: str, allowed: Iterable[str]) -> str:
    """The end of a message: what is allowed, and the nearest spelling of what was given.

    >>> suggest("epslon", ["epsilon", "length"])
    "Did you mean 'epsilon'? Allowed: epsilon, length."
    """
    names = sorted(allowed)
    close = get_close_matches(name, names, n=1)
    meant = f"Did you mean {close[0]!r}? " if close else ""
    listed = f"Allowed: {', '.join(names[:MAX_LISTED])}{', …' * (len(names) > MAX_LISTED)}."
    return meant + (listed if names else "There is nothing to choose from.")
