"""Where every rank is: phases in a shared store, and limits of waiting that name who is missing."""

import json
import os
import socket
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from torch.distributed import DistError, Store

from grupo.core.exit_codes import CommandError
from grupo.distributed.base import Channel

FIRST_PAUSE = 0.0002  # seconds between two looks at the store, which grow while nobody arrives
LAST_PAUSE = 0.2  # from which on the heartbeats are read as well
HEARTBEAT_INTERVAL = 1.0  # seconds


class RankLostError(CommandError):
    """Another rank ended, or did not reach a phase in time; the run can be resumed."""


class Presence:
    """Tells the other ranks where this one is, and waits for them with a limit.

    Args:
        connect: Opens a connection to the store that all ranks share; each thread needs its own.
        rank: The rank of this process.
        size: The number of ranks.
        patience: Seconds to wait for a rank that is alive.
        lost_after: Seconds without a heartbeat after which a rank counts as lost.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        rank: int,
        size: int,
        patience: float,
        lost_after: float,
    ) -> None:
        self.rank = rank
        self.size = size
        self.patience = patience
        self.lost_after = lost_after
        self.stores: dict[Channel, Store] = {"update": connect(), "generate": connect()}
        self.num_meetings: dict[Channel, int] = {"update": 0, "generate": 0}
        self.place = {"host": socket.gethostname(), "pid": os.getpid()}
        self.heartbeat_store = connect()
        self.ended = Event()
        self._beat()
        self.thread = Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)
        self.thread.start()

    def meet(self, phase: str, channel: Channel) -> None:
        """Wait until every rank has reached this call.

        Raises:
            RankLostError: A rank is lost, or did not reach it in time; the message names it.
        """
        store = self.stores[channel]
        number = self.num_meetings[channel] = self.num_meetings[channel] + 1
        arrival = json.dumps({"phase": phase, "number": number, "time": time.time()})
        store.set(f"{channel}/rank/{self.rank}", arrival)
        everybody = f"{channel}/all/{number}"
        if store.add(f"{channel}/count/{number}", 1) == self.size:
            store.set(everybody, "1")
            if number > 1:  # nobody reads the keys of the meeting before the last one any more
                store.delete_key(f"{channel}/count/{number - 1}")
        begun_at = time.monotonic()
        pause = FIRST_PAUSE
        while not store.check([everybody]):
            time.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE)
            waited = time.monotonic() - begun_at
            if pause == LAST_PAUSE and (
                problem := self._problem(store, channel, number, phase, waited)
            ):
                raise RankLostError(problem)

    def describe(self, phase: str) -> str:
        """A sentence about the ranks without a recent heartbeat, after a failed collective."""
        store = self.stores["update"]
        time.sleep(2 * HEARTBEAT_INTERVAL)  # a rank that just ended has a recent one
        lost = [
            f"rank {rank} ({place}) was last seen {seconds:.0f} s ago"
            for rank, (place, seconds) in self._heartbeats(store).items()
            if seconds > 2 * HEARTBEAT_INTERVAL
        ]
        who = "; ".join(lost) or "all ranks still send heartbeats"
        return f"The exchange {phase!r} failed: {who}."

    def close(self) -> None:
        """End the heartbeat."""
        self.ended.set()
        self.thread.join()

    def _problem(
        self, store: Store, channel: Channel, number: int, phase: str, waited: float
    ) -> str:
        """Why it is useless to wait longer; "" if it is not."""
        heartbeats = self._heartbeats(store)
        for rank in range(self.size):
            arrival = _read(store, f"{channel}/rank/{rank}") or {"number": 0}
            if arrival["number"] >= number:
                continue
            place, silence = heartbeats.get(rank, ("not started", waited))
            last = f"{arrival['phase']!r}" if arrival["number"] else "nothing yet"
            where = f"rank {rank} ({place}) has not reached {phase!r}; the last that it reached was"
            if silence > self.lost_after:
                return f"{where} {last}, and it was last seen {silence:.0f} s ago."
            if waited > self.patience:
                return f"{where} {last}, and it is alive; waited {waited:.0f} s."
        return ""

    def _heartbeats(self, store: Store) -> dict[int, tuple[str, float]]:
        """Host and process of each rank, and the seconds since it was seen."""
        beats = {rank: _read(store, f"heartbeat/{rank}") for rank in range(self.size)}
        return {
            rank: (f"host {beat['host']}, process {beat['pid']}", time.time() - beat["time"])
            for rank, beat in beats.items()
            if beat
        }

    def _beat(self) -> None:
        beat = json.dumps({**self.place, "time": time.time()})
        self.heartbeat_store.set(f"heartbeat/{self.rank}", beat)

    def _beat_until_ended(self) -> None:
        while not self.ended.wait(HEARTBEAT_INTERVAL):
            try:
                self._beat()
            except DistError:  # the process of the store has ended: `meet` says so
                return


def _read(store: Store, key: str) -> dict[str, Any] | None:
    return json.loads(store.get(key)) if store.check([key]) else None
