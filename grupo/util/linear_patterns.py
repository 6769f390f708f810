r"""Regular expressions of recipes and data, in an engine whose time is linear in the text.

Python's own engine backtracks: a pattern such as (a+)+$ keeps it busy for ever on thirty letters,
and no time limit can interrupt it. RE2 never backtracks. Its syntax has neither backreferences nor
assertions that look around; `$` without (?m) is the end of the text alone; \b is a border of ASCII
letters and digits. \d, \s and \w mean what they mean in Python, except negated within brackets.
"""

from functools import lru_cache
from itertools import islice
from typing import Any

import re2

from grupo.util.errors import ConfigError

MAX_MATCHES = 10_000  # of one search: each may take time in proportion to the rest of the text
WORD, DIGIT, SPACE = r"\p{L}\p{N}_", r"\p{Nd}", r"\s\x0b\x1c-\x1f\x{85}\p{Z}"
IN_BRACKETS = {"w": WORD, "d": DIGIT, "s": SPACE}
OUTSIDE = {name: f"[{characters}]" for name, characters in IN_BRACKETS.items()}
OUTSIDE |= {name.upper(): f"[^{characters}]" for name, characters in IN_BRACKETS.items()}
OUTSIDE |= {"Z": r"\z"}


class LinearPattern:
    r"""A regular expression; a dot matches newlines too.

    Args:
        pattern: The regular expression, in the syntax of RE2.
        field: The field that holds it, for the message of an error.

    Raises:
        ConfigError: It is no regular expression, or one that needs backtracking.

    >>> LinearPattern(r"(\d+)").matches("3, then 42")
    ['3', '42']
    >>> LinearPattern(r"(a+)+$").occurs_in("a" * 10_000 + "!")
    False
    """

    def __init__(self, pattern: str, field: str = "pattern") -> None:
        self.compiled = _compiled(pattern, field)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.compiled.groups

    def occurs_in(self, text: str) -> bool:
        """True if the pattern matches anywhere in a text."""
        return self.compiled.search(_encodable(text)) is not None

    def is_whole(self, text: str) -> bool:
        """True if the pattern matches the whole of a text."""
        return self.compiled.fullmatch(_encodable(text)) is not None

    def matches(self, text: str) -> list[str]:
        """The first group of each match, or each match of a pattern without groups.

        A group that takes no part in a match is "". A text with too many matches has none.
        """
        found = list(islice(self.compiled.finditer(_encodable(text)), MAX_MATCHES + 1))
        group = min(self.groups, 1)
        return [match[group] or "" for match in found] if len(found) <= MAX_MATCHES else []


@lru_cache(maxsize=256)
def _compiled(pattern: str, field: str) -> Any:
    options = re2.Options()
    options.log_errors, options.dot_nl = False, True
    try:
        return re2.compile(_in_re2(pattern), options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"{field}: {pattern!r} is not a regular expression: {reason}. Allowed: the syntax of"
            " RE2, which has no backreferences and does not look around."
        ) from error


def _in_re2(pattern: str) -> str:
    r"""The pattern with classes of Unicode, as Python has them.

    >>> print(_in_re2(r"\d[\w-]\\d"))
    [\p{Nd}][\p{L}\p{N}_-]\\d
    """
    parts, index, bracket = list[str](), 0, -1  # the first place after an open bracket
    while index < len(pattern):
        char, escaped = pattern[index], pattern[index + 1 : index + 2]
        if char == "\\" and escaped:
            classes = OUTSIDE if bracket < 0 else IN_BRACKETS
            parts.append(classes.get(escaped, char + escaped))
            index += 2
            continue
        if char == "[" and bracket < 0:
            bracket = index + 2 if pattern[index + 1 : index + 2] == "^" else index + 1
        elif char == "]" and 0 <= bracket < index:  # as the first character it stands for itself
            bracket = -1
        parts.append(char)
        index += 1
    return "".join(parts)


def _encodable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which UTF-8 lacks."""
    return text.encode(errors="replace").decode()
