"""How busy the processor is, and with whose work: others' would spoil what is measured."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
IDLE, WAITING = 3, 4  # places in the first line of /proc/stat


@dataclass(frozen=True)
class Clock:
    """What has passed: seconds, seconds of all cores' work, and of one process's."""

    passed: float
    worked: float
    own: float

    @staticmethod
    def of(process: int) -> "Clock":
        """Read now."""
        ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        worked = sum(ticks) - ticks[IDLE] - ticks[WAITING]
        mine = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return Clock(time.perf_counter(), worked / TICKS, sum(map(int, mine)) / TICKS)

    def others(self, before: "Clock") -> float:
        """How many cores worked for others since then, on average."""
        work = (self.worked - before.worked) - (self.own - before.own)
        return max(0.0, work / (self.passed - before.passed))
