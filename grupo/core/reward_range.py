"""The range of rewards that a component assumes or an environment declares."""

from math import inf

RewardRange = tuple[float, float]  # smallest and largest


def range_as_text(bounds: RewardRange) -> str:
    """A range in words.

    >>> range_as_text((0.0, 1.0)), range_as_text((0.0, inf))
    ('from 0 to 1', 'of at least 0')
    """
    low, high = bounds
    if high == inf:
        return f"of at least {low:g}"
    return f"from {low:g} to {high:g}" if low > -inf else f"of at most {high:g}"


def checked_range(field: str, value: RewardRange | None) -> RewardRange | None:
    """The range; raises `TypeError` if it is no pair of a smaller and a larger number."""
    if value is not None and not (len(value) == 2 and value[0] < value[1]):
        raise TypeError(f"{field}: {value!r}. Allowed: (smallest, largest), or None.")
    return value


def common_range(a: RewardRange | None, b: RewardRange | None) -> RewardRange | None:
    """The rewards that both allow."""
    if a is None or b is None:
        return a or b
    return checked_range("reward_range", (max(a[0], b[0]), min(a[1], b[1])))
