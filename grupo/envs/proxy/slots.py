"""Places for agents that are at work at the same time."""

import asyncio
from dataclasses import dataclass, field

from grupo.util.event_loop import RolloutLoop


@dataclass
class AgentSlots:
    """Limits the number of agents at work; each has its place until its rollout is over.

    A sampler that keeps agents waiting until further agents have begun would wait for ever; the
    wait for a place therefore ends where nothing else happens.

    Args:
        count: Number of places.
        time_limit: Seconds after which a wait ends in which no agent was answered or ended, and
            the policy generated nothing.
    """

    count: int
    time_limit: float
    num_events: int = 0  # answers to agents and ends of agents so far
    _semaphore: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._semaphore = asyncio.Semaphore(self.count)

    async def acquire(self) -> bool:
        """Wait for a place; returns False if none will become free."""
        while True:
            before = self.num_events
            try:
                async with asyncio.timeout(self.time_limit):
                    return await self._semaphore.acquire()
            except TimeoutError:
                loop = asyncio.get_running_loop()
                is_busy = isinstance(loop, RolloutLoop) and loop.has_external_work
                if before == self.num_events and not is_busy:
                    return False

    def release(self) -> None:
        """Give a place back."""
        self._semaphore.release()
