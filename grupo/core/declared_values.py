"""Checks of the values that a component declares in `Requires` and `Provides`.

A component's author makes these errors, not a user: they are `TypeError`s.
"""

from collections.abc import Iterable

from grupo.core.aux_heads import AuxHead
from grupo.core.kept_rollouts import KeepRule
from grupo.core.task_statistic import TaskStatistic


def checked_names(field: str, names: Iterable[str]) -> frozenset[str]:
    """The names as a set; a string, which would be a set of letters, is refused."""
    if isinstance(names, str):
        raise TypeError(f"{field}: {names!r} is one string. Allowed: names, as in ({names!r},).")
    result = frozenset(names)
    for name in result:
        if not isinstance(name, str) or not name:
            raise TypeError(f"{field}: {name!r} is no name. Allowed: strings that are not empty.")
    return result


def checked_roles(field: str, roles: Iterable[str]) -> frozenset[str]:
    """The roles as a set; "" is the role of the main policy."""
    if isinstance(roles, str):
        raise TypeError(f"{field}: {roles!r} is one string. Allowed: roles, as in ({roles!r},).")
    result = frozenset(roles)
    return checked_names(field, result - {""}) | (result & {""})


def checked_count(field: str, count: int) -> int:
    """The whole number, which is 0 or more."""
    if not isinstance(count, int) or count < 0:
        raise TypeError(f"{field}: {count!r}. Allowed: a whole number, 0 or more.")
    return count


def checked_flag(field: str, flag: bool) -> bool:
    """The truth value."""
    if not isinstance(flag, bool):
        raise TypeError(f"{field}: {flag!r}. Allowed: True or False.")
    return flag


def checked_heads(heads: Iterable[AuxHead]) -> tuple[AuxHead, ...]:
    """Each head once, in order of appearance."""
    result = tuple(dict.fromkeys(heads))
    for head in result:
        if not isinstance(head, AuxHead):
            raise TypeError(f"heads: {head!r} is no auxiliary head. Allowed: LinearHead(…).")
    names = [head.name for head in result]
    if len(set(names)) < len(names):
        raise TypeError(f"heads: two have one name in {names}. Allowed: different names.")
    return result


def checked_statistics(
    field: str, statistics: Iterable[TaskStatistic]
) -> tuple[TaskStatistic, ...]:
    """Each statistic once, in order of appearance."""
    result = tuple(dict.fromkeys(statistics))
    for statistic in result:
        if not isinstance(statistic, TaskStatistic):
            raise TypeError(f"{field}: {statistic!r} is no statistic. Allowed: TaskStatistic.")
    return result


def checked_rules(rules: Iterable[KeepRule]) -> tuple[KeepRule, ...]:
    """Each rule once, in order of appearance."""
    for rule in (result := tuple(dict.fromkeys(rules))):
        if not callable(rule):
            raise TypeError(
                f"replay_rules: {rule!r} is no rule. Allowed: BestAndWorst(…), for example."
            )
    return result
