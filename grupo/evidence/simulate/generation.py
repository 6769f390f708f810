"""Processes that generate: each decodes its rollouts together."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grupo.evidence.simulate.costs import Costs


@dataclass
class SimulatedRollout:
    """A rollout.

    Args:
        remaining: Tokens that are not generated yet.
        parts: Version of the weights and number of tokens, of each step that generated it.
    """

    remaining: int
    parts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens generated so far."""
        return sum(tokens for _, tokens in self.parts)


Group = Sequence[SimulatedRollout]


class Generators:
    """Generators, which decode the rollouts of one step after the other.

    A decoding step takes `decode_step + decode_row * rows` seconds. The tokens of a rollout that is
    continued are evaluated once more before, because the weights are new.

    Args:
        costs: Seconds of each phase.
        count: Number of generators.
        balances: Whether a group goes to the generator with the fewest rollouts, as with servers;
            else to each in turn.
    """

    def __init__(self, costs: Costs, count: int, *, balances: bool) -> None:
        self.costs = costs
        self.balances = balances
        self.prefill_left = np.zeros(count)  # seconds
        self.rows = np.zeros(count)  # rollouts that are decoded
        self.decoded = np.zeros(count)  # tokens that each row has had since the start
        self.next_end = np.full(count, np.inf)  # `decoded` at the end of the next rollout
        self.queues: list[list[float]] = [[] for _ in range(count)]
        self.busy = np.zeros(count)  # seconds since the start

    @property
    def active(self) -> np.ndarray:
        """Which generators have work."""
        return (self.rows > 0) | (self.prefill_left > 0)

    def begin(self, groups: Iterable[Group], version: int, limit: int) -> None:
        """Begin or continue groups, with at most `limit` tokens of a rollout."""
        load = np.zeros(len(self.rows))
        for i, group in enumerate(groups):
            generator = int(load.argmin()) if self.balances else i % len(load)
            load[generator] += sum(rollout.remaining > 0 for rollout in group)
            for rollout in group:
                self._add(generator, rollout, version, limit)
        for generator in range(len(load)):
            self._update_rows(generator)

    def _add(self, generator: int, rollout: SimulatedRollout, version: int, limit: int) -> None:
        tokens = min(rollout.remaining, limit)
        if tokens:
            self.prefill_left[generator] += self.costs.forward_token * rollout.tokens
            heapq.heappush(self.queues[generator], self.decoded[generator] + tokens)
            rollout.parts.append((version, tokens))
            rollout.remaining -= tokens

    def _update_rows(self, generator: int) -> None:
        queue = self.queues[generator]
        self.rows[generator] = len(queue)
        self.next_end[generator] = queue[0] if queue else np.inf

    def until_event(self, speed: np.ndarray) -> float:
        """Seconds until a prefill or a rollout ends; infinity without work.

        Args:
            speed: Seconds of work that each generator does in a second.
        """
        active = self.active
        return float((self._until_events() / speed)[active].min()) if active.any() else np.inf

    def _until_events(self) -> np.ndarray:
        left = np.where(self.rows > 0, self.next_end - self.decoded, 0.0)
        return np.where(self.prefill_left > 0, self.prefill_left, left * self._token_seconds())

    def _token_seconds(self) -> np.ndarray:
        return self.costs.decode_step + self.costs.decode_row * self.rows

    def advance(self, seconds: float, speed: np.ndarray) -> None:
        """Work for some seconds, at most until the next event, each at its speed."""
        active = self.active
        self.busy += active * seconds
        work = seconds * speed
        ended = active & (self._until_events() <= work * (1 + 1e-9))
        prefills = self.prefill_left > 0
        decodes = active & ~prefills
        self.prefill_left[prefills & ~ended] -= work[prefills & ~ended]
        self.prefill_left[prefills & ended] = 0.0
        moving = decodes & ~ended
        self.decoded[moving] += work[moving] / self._token_seconds()[moving]
        for generator in np.flatnonzero(decodes & ended):
            self._end_rollouts(int(generator))

    def _end_rollouts(self, generator: int) -> None:
        queue = self.queues[generator]
        self.decoded[generator] = self.next_end[generator]
        while queue and queue[0] <= self.decoded[generator]:
            heapq.heappop(queue)
        self._update_rows(generator)
