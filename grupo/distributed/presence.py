"""Where every rank is: phases in a shared store, and limits of waiting that name who is missing."""

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from torch.distributed import DistError, Store

from grupo.distributed.base import Channel
from grupo.distributed.phase import Phase
from grupo.distributed.rank_report import RankPlace, write_report
from grupo.util.exit_codes import CommandError

FIRST_PAUSE = 0.0002  # seconds between two looks at the store
PAUSE_FRACTION = 0.05  # of the time waited, by which later pauses grow
LAST_PAUSE = 0.2  # from which on the heartbeats are read as well
HEARTBEAT_INTERVAL = 1.0  # seconds
STORE_LOST = "the process of the ranks' store has ended, which is rank 0 or the launcher."


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
        self.num_barriers: dict[Channel, int] = {"update": 0, "generate": 0}
        self.step = 0  # that this rank works on, from 1; 0 before the first
        self.report_file: Path | None = None
        self.place = {"host": socket.gethostname(), "pid": os.getpid()}
        self.heartbeat_store = connect()
        self.ended = False
        self.woken = Event()  # the next heartbeat is due at once
        self._beat()
        self.thread = Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)
        self.thread.start()

    def wait_at_barrier(self, phase: Phase, channel: Channel) -> None:
        """Wait until every rank has reached this call.

        Raises:
            RankLostError: A rank is lost, or did not reach it in time; the message names it.
        """
        try:
            self._wait_at_barrier(self.stores[channel], phase, channel)
        except DistError as error:
            raise RankLostError(f"'{phase}': {STORE_LOST}") from error

    def _wait_at_barrier(self, store: Store, phase: Phase, channel: Channel) -> None:
        number = self.num_barriers[channel] = self.num_barriers[channel] + 1
        arrival = json.dumps({"phase": phase, "number": number, "time": time.time()})
        store.set(f"{channel}/rank/{self.rank}", arrival)
        all_arrived = f"{channel}/all/{number}"
        if store.add(f"{channel}/count/{number}", 1) == self.size:
            store.set(all_arrived, "1")
            for name in ("count", "all"):  # all ranks have left the barrier before
                store.delete_key(f"{channel}/{name}/{number - 1}")
        begun_at = time.monotonic()
        waited = 0.0
        while not store.check([all_arrived]):
            pause = min(max(waited * PAUSE_FRACTION, FIRST_PAUSE), LAST_PAUSE)
            time.sleep(pause)
            waited = time.monotonic() - begun_at
            if pause == LAST_PAUSE and (
                problem := self._problem(store, channel, number, phase, waited)
            ):
                raise RankLostError(problem)

    def describe(self, phase: Phase) -> str:
        """A sentence about the ranks without a recent heartbeat, after a failed collective."""
        time.sleep(2 * HEARTBEAT_INTERVAL)  # a rank that just ended has a recent one
        try:
            heartbeats = self._heartbeats(self.stores["update"])
        except DistError:
            return f"The exchange '{phase}' failed: {STORE_LOST}"
        lost = [
            f"rank {rank} ({place}) was last seen {seconds:.0f} s ago"
            for rank, (place, seconds) in heartbeats.items()
            if seconds > 2 * HEARTBEAT_INTERVAL
        ]
        ranks = "; ".join(lost) or "all ranks still send heartbeats"
        return f"The exchange '{phase}' failed: {ranks}."

    def start_rank_report(self, file: Path) -> None:
        """Write where every rank is into a file, now and with each heartbeat."""
        self.report_file = file
        self.woken.set()

    def close(self) -> None:
        """End the heartbeat."""
        self.ended = True
        self.woken.set()
        self.thread.join()

    def _problem(
        self, store: Store, channel: Channel, number: int, phase: Phase, waited: float
    ) -> str:
        """Why it is useless to wait longer; "" if it is not."""
        heartbeats = self._heartbeats(store)
        for rank in range(self.size):
            arrival = _read(store, f"{channel}/rank/{rank}") or {"number": 0}
            if arrival["number"] >= number:
                continue
            place, silence = heartbeats.get(rank, ("not started", waited))
            last = f"{arrival['phase']!r}" if arrival["number"] else "nothing yet"
            where = f"rank {rank} ({place}) has not reached '{phase}'; the last that it reached was"
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
        beat = json.dumps({**self.place, "step": self.step, "time": time.time()})
        self.heartbeat_store.set(f"heartbeat/{self.rank}", beat)
        if self.report_file:
            with suppress(OSError):  # the report is not worth the run
                write_report(self.report_file, self._places())

    def _places(self) -> list[RankPlace]:
        """Where every rank is that has started."""
        store = self.heartbeat_store
        places = []
        for rank in range(self.size):
            beat = _read(store, f"heartbeat/{rank}")
            arrivals = [_read(store, f"{channel}/rank/{rank}") for channel in self.stores]
            last = max(filter(None, arrivals), key=lambda arrival: arrival["time"], default=None)
            if beat:
                phase, since = (last["phase"], last["time"]) if last else ("started", beat["time"])
                place = (beat["host"], beat["pid"], beat["step"], phase, since, beat["time"])
                places.append(RankPlace(rank, *place))
        return places

    def _beat_until_ended(self) -> None:
        while True:
            self.woken.wait(HEARTBEAT_INTERVAL)
            self.woken.clear()
            if self.ended:
                return
            try:
                self._beat()
            except DistError:  # the process of the store has ended: `wait_at_barrier` says so
                return


def _read(store: Store, key: str) -> dict[str, Any] | None:
    return json.loads(store.get(key)) if store.check([key]) else None
