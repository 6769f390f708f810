"""The options of a file, and the draft of a recipe that they are translated into."""

from dataclasses import dataclass, field
from typing import Any

PLACEHOLDER_TASKS = "train.jsonl"
PLACEHOLDER_STEPS = 100


@dataclass
class OptionValues:
    """The options that a file sets.

    Args:
        values: The values by the names of the library; None for a value that is no constant.
        remarks: Facts about the file for the reader of the recipe.
        used: Names that a translation has read.
    """

    values: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an option, which counts as translated; the default if it is not set."""
        self.used.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def number(self, name: str, default: float) -> float:
        """The value of an option as a number; the default for text that is none."""
        try:
            return float(self.get(name, default))
        except (TypeError, ValueError):
            self.used.discard(name)
            return default

    def flag(self, name: str, default: bool = False) -> bool:
        """The value of an option as a truth value."""
        return str(self.get(name, default)).lower() in ("true", "1", "yes")


@dataclass
class Objective:
    """The choices of a method that the libraries have in common.

    Args:
        estimator: Method by name, "grpo" for slots of GRPO.
        group_size: Rollouts per task.
        clip_low: Lower clip range.
        clip_high: Upper clip range.
        kl_coef: Weight of the KL divergence.
        entropy_coef: Weight of the entropy bonus.
        scale_by_std: Whether advantages are divided by the standard deviation.
        aggregation: Code of the aggregation.
        epochs: Passes over a step's batch.
        minibatches: Updates per pass.
        dynamic_sampling: Rounds of dynamic sampling; 0: none.
        overlong: Limit and buffer of the overlong penalty; empty: none.
    """

    estimator: str = "grpo"
    group_size: int = 8
    clip_low: float = 0.2
    clip_high: float = 0.2
    kl_coef: float = 0.0
    entropy_coef: float = 0.0
    scale_by_std: bool = True
    aggregation: str = "sequence_mean"
    epochs: int = 1
    minibatches: int = 1
    dynamic_sampling: int = 0
    overlong: tuple[int, ...] = ()

    def table(self) -> dict[str, Any]:
        """The table [method] of a recipe file."""
        if self.estimator != "grpo":
            return {"type": self.estimator, **self._arguments(), **self._updates()}
        table: dict[str, Any] = {
            "sampler": f"GroupSampler({self.group_size})",
            "loss": self._loss(),
            "aggregation": self.aggregation,
            **self._updates(),
        }
        if self.dynamic_sampling:
            table["curriculum"] = f"DynamicSampling(ShuffledTasks(), {self.dynamic_sampling})"
            table["filter"] = "keep_nonzero_std"
        if self.overlong or not self.scale_by_std:
            penalty = [f"OverlongPenalty{self.overlong}"] if self.overlong else []
            scale = ["ScaleByStd()"] if self.scale_by_std else []
            table["advantage"] = {"type": "Chain", "estimators": [*penalty, "Center()", *scale]}
        return table

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {"group_size": self.group_size}
        if self.estimator == "gspo":
            arguments |= {"clip_low": self.clip_low, "clip_high": self.clip_high}
        elif self.estimator == "cispo":
            arguments |= {"clip_high": self.clip_high}
        elif self.estimator in ("rloo", "remax", "reinforce_pp", "reinforce_pp_baseline"):
            arguments |= {"kl_coef": self.kl_coef}
        return arguments

    def _updates(self) -> dict[str, Any]:
        is_single = self.epochs == self.minibatches == 1
        code = f"Updates({self.epochs}, minibatches={self.minibatches})"
        return {"updates": "SingleUpdate()" if is_single else code}

    def _loss(self) -> str:
        code = f"Clip({self.clip_low}, {self.clip_high})"
        if self.kl_coef:
            code = f"SumLoss({code}, ScaledLoss({self.kl_coef}, KL()))"
        if self.entropy_coef:
            code = f"SumLoss({code}, EntropyBonus({self.entropy_coef}))"
        return code


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
