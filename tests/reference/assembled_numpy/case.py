"""The batch that a reference reads: one row per rollout, arrays of numpy in float64.

N rows, one for each rollout, have at most T actions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tests.reference.assembled_numpy.formulas import Array

WIDTH = 7  # T
OBSERVATION = 2  # the column of an observation between two turns; never trained
LENGTHS = (7, 4, 2, 6, 5, 7, 2, 4, 6, 2, 7, 5, 4, 7, 5, 6)  # actions and observations of each row
NO_SPREAD = 2  # the group whose rewards are all equal


@dataclass(frozen=True)
class Case:
    """A batch before its update.

    Args:
        reward: Reward of each rollout (N,).
        group: Group of each rollout (N,).
        mask: True where the policy acted and is trained (N, T).
        turn: Turn of each action (N, T).
        old_logp: Log-probability of each action when it was sampled (N, T).
        signals: Numbers (N, T) that are measured once, before the first update: "logp@ref",
            "step/reward".
        terms: Terms of the reward (N,), by name.
        history: Rewards of the earlier groups of each group's task, oldest first.
        pi: Numbers (N, T) of the policy that is trained, which the gradient is taken in: "logp",
            "entropy". Values before the first update.
        advantage: Advantage of each action (N, T), once it is known.
    """

    reward: Array
    group: Array
    mask: Array
    turn: Array
    old_logp: Array
    signals: Mapping[str, Array] = field(default_factory=dict)
    terms: Mapping[str, Array] = field(default_factory=dict)
    history: Sequence[Sequence[Sequence[float]]] = ()
    pi: Mapping[str, Array] = field(default_factory=dict)
    advantage: Array | None = None

    @property
    def lengths(self) -> Array:
        """Number of trained actions of each row (N,)."""
        return self.mask.sum(1)

    def select(self, rows: Array) -> "Case":
        """The case with these rows alone; groups keep their numbers."""
        return replace(
            self,
            reward=self.reward[rows],
            group=self.group[rows],
            mask=self.mask[rows],
            turn=self.turn[rows],
            old_logp=self.old_logp[rows],
            signals={name: x[rows] for name, x in self.signals.items()},
            terms={name: x[rows] for name, x in self.terms.items()},
            pi={name: x[rows] for name, x in self.pi.items()},
            advantage=None if self.advantage is None else self.advantage[rows],
        )


Values = str | Sequence[float]  # "binary", "half" (0, 1/2, 1), "real" (0 to 1), or the numbers


@dataclass(frozen=True)
class CaseOptions:
    """How the case of a method differs from the usual one.

    Args:
        groups: Rollouts of each group; at most 16 in all.
        reward: The rewards, or the name of a distribution. "correct": those of the term.
        terms: The reward terms, by name.
        signals: Signals (N, T) with given numbers, by name. All others that the method requires
            are random: log-probabilities are negative, step values are 0, 1/2 or 1, others are
            positive.
        ratio_spread: Largest distance of a log-ratio from 0 at the first update, in nats.
        lengths: Actions and observations of each row.
        history: Rewards of the earlier groups of each group's task.
        progress: Share of the training that is done, for schedules.
        move: Largest change of a number by an update.
        seed: Seed of the random numbers.
    """

    groups: Sequence[int] = (4, 4, 4, 3)
    reward: Values = "real"
    terms: Mapping[str, Values] = field(default_factory=dict)
    signals: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    ratio_spread: float = 0.6
    lengths: Sequence[int] = LENGTHS
    history: Sequence[Sequence[Sequence[float]]] = ()
    progress: float = 0.5
    move: float = 0.3
    seed: int = 0


def build_case(
    options: CaseOptions, signals: Sequence[str], pi: Sequence[str], terms: Sequence[str]
) -> Case:
    """The case with the numbers that a method requires.

    With the signal "sampled", rows 1, 6 and 11 are demonstrations (0 at each action) and the action
    of column 3 is forced in the rows after them; `old_logp` is 0 there. With "off_context", the
    actions of rows 1, 6 and 11 come from another context (1 at each action).

    Args:
        signals: Names of the numbers that are measured once.
        pi: Names of the numbers of the policy beside "logp".
        terms: Names of the reward terms.
    """
    rng = np.random.default_rng(options.seed)
    group = np.repeat(np.arange(len(options.groups)), options.groups)
    n = len(group)
    shape = (n, WIDTH)
    columns = np.arange(WIDTH)
    mask = (columns < np.array(options.lengths[:n])[:, None]) & (columns != OBSERVATION)
    spread = (group != NO_SPREAD).astype(float)
    term_values = {
        name: _values(options.terms.get(name, "half"), n, rng) * 1.0 for name in sorted(terms)
    }
    for name in sorted(terms):
        if isinstance(options.terms.get(name, "half"), str):
            term_values[name] = term_values[name] * spread
    if options.reward == "correct":
        reward = term_values["correct"]
    else:
        reward = _values(options.reward, n, rng)
        if isinstance(options.reward, str):
            reward = reward * spread
    old_logp = _logp(rng, shape)
    log_ratio = rng.permutation(_spread_log_ratios(n * WIDTH)).reshape(shape)
    logp = np.minimum(old_logp + options.ratio_spread * log_ratio, -0.02)
    demonstration = np.arange(n) % 5 == 1
    forced = np.roll(demonstration, 1)[:, None] & (columns == 3)
    sampled = mask & ~(demonstration[:, None] | forced)
    measured = {}
    for name in sorted({"logp@sampler", *signals}):
        measured[name] = _signal(name, rng, shape, old_logp)
    if "sampled" in signals:
        measured["sampled"] = sampled * 1.0
        old_logp = np.where(mask & ~sampled, 0.0, old_logp)
    else:
        measured["sampled"] = mask * 1.0
    is_other = demonstration[:, None] & ("off_context" in signals)
    measured["off_context"] = (mask & is_other) * 1.0
    for name, numbers in options.signals.items():
        measured[name] = np.array(numbers, dtype=float)
    return Case(
        reward=reward,
        group=group,
        mask=mask,
        turn=np.broadcast_to((columns > OBSERVATION).astype(int), shape).copy(),
        old_logp=old_logp,
        signals=measured,
        terms=term_values,
        history=options.history or [[[0.0, 1.0, float(p)]] for p in range(len(options.groups))],
        pi={"logp": logp} | {name: _signal(name, rng, shape, old_logp) for name in sorted(pi)},
    )


def _spread_log_ratios(count: int) -> Array:
    """Numbers from -1 to 1, dense around the bounds 0.8, 1.2 and 1.28 if 1 is 0.6 nats."""
    wide, dense = np.linspace(0.01, 1, count // 2), np.linspace(0.2, 0.55, -(-count // 2))
    sizes = np.concatenate([wide, dense])
    return sizes * np.where(np.arange(count) % 2, 1.0, -1.0)


def _values(values: Values, n: int, rng: np.random.Generator) -> Array:
    if values == "binary":
        return np.round(rng.random(n))
    if values == "half":
        return np.round(2 * rng.random(n)) / 2
    if values == "real":
        return rng.random(n)
    if isinstance(values, str):
        raise ValueError(f"{values!r} is no distribution")
    return np.array(values, dtype=float)[:n]


def _logp(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.log(rng.uniform(0.05, 0.6, shape))


def _signal(name: str, rng: np.random.Generator, shape: tuple[int, int], near: Array) -> Array:
    if "logp" in name:  # near the old log-probability, as those of related models are
        return np.minimum(near + rng.uniform(-0.7, 0.7, shape), -0.02)
    if name.startswith("step/"):
        return np.round(2 * rng.random(shape)) / 2
    return rng.uniform(0.1, 2.5, shape)
