"""The options of a file, and translations that the libraries have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grupo.config.parse_value import plain_value

PLACEHOLDER_TASKS = "train.jsonl"
PLACEHOLDER_STEPS = 100


@dataclass
class OptionValues:
    """The options that a file sets.

    Args:
        values: The values by the names of the library; None for a value that is no constant.
        remarks: Facts about the file for the reader of the recipe.
        used: Names that a translation has read.
        differing: Options that are not or not exactly translated, with the reason.
    """

    values: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    differing: dict[str, str] = field(default_factory=dict)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an option, which counts as translated; the default if it is not set."""
        self.used.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def first(self, *names: str) -> Any:
        """The value of the first of these options that is set; None if none is."""
        values = [self.get(name) for name in names]
        return next((value for value in values if value is not None), None)

    def number(self, name: str, default: float) -> float:
        """The value of an option as a number; the default for text that is none."""
        try:
            return float(self.get(name, default))
        except (TypeError, ValueError):
            self.used.discard(name)
            return default

    def optional(self, name: str) -> float | None:
        """The value of an option as a number; None if it is not set."""
        return None if self.get(name) is None else self.number(name, 0.0)

    def pair(self, name: str, default: tuple[float, float]) -> tuple[float, float]:
        """The two numbers of an option; the default, by name, for any other value."""
        values = self.get(name, default)
        try:
            low, high = map(float, values)
        except (TypeError, ValueError):
            self.differs(name, f"it is not two numbers; {default} is in their place")
            return default
        return low, high

    def differs(self, name: str, reason: str) -> None:
        """Record an option whose update the recipe does not have, with the reason."""
        self.used.add(name)
        self.differing[name] = f"{self.values.get(name, 'the default')!r}: {reason}"

    def flag(self, name: str, default: bool = False) -> bool:
        """The value of an option as a truth value."""
        return str(self.get(name, default)).lower() in ("true", "1", "yes")


def learning_rate(
    rate: float, schedule: str, warmup_fraction: float, end: float = 0.0
) -> float | str:
    """The learning rate in a recipe file.

    Args:
        rate: The highest learning rate.
        schedule: Name of the schedule, such as "cosine" or "linear"; others are constant.
        warmup_fraction: Fraction of the run in which it rises from 0.
        end: The learning rate at the end of the run.

    >>> learning_rate(1e-6, "cosine_with_min_lr", 0.1, 1e-7)
    'Warmup(0.1, Cosine(1e-06, 1e-07))'
    >>> learning_rate(1e-6, "constant", 0.0)
    1e-06
    """
    kind = next((k for k in ("cosine", "linear") if k in schedule), "")
    code = f"{kind.capitalize()}({rate}, {end})" if kind else str(rate)
    if warmup_fraction > 0:
        return f"Warmup({min(warmup_fraction, 1.0):g}, {code})"
    return code if kind else rate


def minibatches_of(source: OptionValues, batch: float, minibatch: float, prompts: int) -> int:
    """Updates per pass over a step, at most one for each of its prompts."""
    count = max(1, round(batch / minibatch)) if minibatch > 0 else 1
    if count > prompts:
        source.remarks.append(f"{count} updates per step became {prompts}: no group is split")
    return min(count, prompts)


def template_kwargs(source: OptionValues, name: str) -> dict[str, Any]:
    """The arguments of the chat template as a table of the policy; none if the file sets none.

    Args:
        source: The options of the file.
        name: The option that holds them, as a mapping or with an option below it for each.
    """
    whole = source.get(name, {})
    whole = plain_value(whole) if isinstance(whole, str) else whole
    if not isinstance(whole, Mapping):
        source.differs(name, "set policy.chat_template_kwargs")
        return {}
    below = [key for key in source.values if key.startswith(f"{name}.")]
    kwargs = dict(whole) | {key.removeprefix(f"{name}."): source.get(key) for key in below}
    values = {key: plain_value(x) if isinstance(x, str) else x for key, x in kwargs.items()}
    return {"chat_template_kwargs": values} if values else {}
