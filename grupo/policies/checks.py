"""Numbers that cannot be, refused before anything is loaded."""

from collections.abc import Iterable

from grupo.errors import Refused

Rule = tuple[str, object, bool, str]  # a field, its value, whether that is allowed, what is


def check(rules: Iterable[Rule]) -> None:
    """Refuse the first value that is not allowed.

    >>> check([("limit", 0, False, "1 or more")])
    Traceback (most recent call last):
    grupo.errors.Refused: limit: 0. Allowed: 1 or more.
    """
    for field, value, allowed, what in rules:
        if not allowed:
            raise Refused(f"{field}: {value!r}. Allowed: {what}.")
