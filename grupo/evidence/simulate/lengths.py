"""Lengths of answers in tokens: those of a run, or a distribution."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from grupo.util.errors import ConfigError

PATTERN = re.compile(r"LogNormal\(\s*([\d.e+]+)\s*,\s*([\d.e+]+)\s*\)", re.IGNORECASE)


class LengthDistribution(Protocol):
    """A distribution of lengths."""

    @property
    def limit(self) -> int:
        """The largest length in tokens."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw lengths in tokens, int64, each at least 1."""
        ...


@dataclass(frozen=True)
class MeasuredLengths:
    """Lengths of the rollouts of a run, drawn with replacement.

    Args:
        lengths: In tokens.
        max_new_tokens: The largest length that an answer could have; 0: the largest that one has.
    """

    lengths: Sequence[int]
    max_new_tokens: int = 0

    @property
    def limit(self) -> int:
        """The largest length in tokens."""
        return self.max_new_tokens or max(self.lengths)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        return np.maximum(rng.choice(np.asarray(self.lengths), size=count), 1)


@dataclass(frozen=True)
class LogNormal:
    """A lognormal distribution.

    Args:
        mean: Mean length in tokens, before the limit.
        sigma: Standard deviation of the logarithm.
        limit: The largest length in tokens; longer ones are cut.
    """

    mean: float
    sigma: float
    limit: int

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        mu = math.log(self.mean) - self.sigma**2 / 2
        drawn = rng.lognormal(mu, self.sigma, size=count)
        return np.clip(np.rint(drawn), 1, self.limit).astype(np.int64)


def parse_lengths(text: str, limit: int) -> LogNormal:
    """The distribution that `--length` names.

    >>> parse_lengths("LogNormal(3000, 0.8)", 16_000)
    LogNormal(mean=3000.0, sigma=0.8, limit=16000)

    Raises:
        ConfigError: It names none.
    """
    match = PATTERN.fullmatch(text.strip())
    if not match or float(match[1]) < 1:
        raise ConfigError(
            f"length: {text!r}. Allowed: 'LogNormal(MEAN, SIGMA)', the mean in tokens and the"
            " standard deviation of its logarithm, such as 'LogNormal(3000, 0.8)'."
        )
    return LogNormal(float(match[1]), float(match[2]), limit)
