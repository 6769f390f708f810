"""Numbers, differences and links as the page of the claims writes them."""

import math

from grupo.catalogue.search import find_entry
from grupo.util.statistics import Interval


def method_link(key: str) -> str:
    """The name of a method with a link to its page."""
    return f"[{find_entry(key).name}](methods/{key}.md)"


def difference_text(interval: Interval) -> str:
    """The difference with its interval, such as "+0.10 [+0.04, +0.16]"."""
    value, low, high = (
        number_text(x, "+.3g") for x in (interval.value, interval.low, interval.high)
    )
    return f"{value} [{low}, {high}]"


def number_text(value: float, form: str = ".3g") -> str:
    """The number, or "n/a" if it is not finite."""
    return format(value, form) if math.isfinite(value) else "n/a"
