"""How busy the processor is, and with whose work: others' would spoil what is measured."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
IDLE_FIELD, IOWAIT_FIELD = 3, 4  # places in the first line of /proc/stat


@dataclass(frozen=True)
class CpuClock:
    """What has passed: seconds, seconds of all cores' work, and of one process's."""

    wall_seconds: float
    cpu_seconds: float
    process_seconds: float

    @staticmethod
    def of(process: int) -> "CpuClock":
        """Read now."""
        ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        worked = sum(ticks) - ticks[IDLE_FIELD] - ticks[IOWAIT_FIELD]
        mine = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
        return CpuClock(
            time.perf_counter(), worked / TICKS_PER_SECOND, sum(map(int, mine)) / TICKS_PER_SECOND
        )

    def other_cores(self, before: "CpuClock") -> float:
        """How many cores worked for others since then, on average."""
        work = (self.cpu_seconds - before.cpu_seconds) - (
            self.process_seconds - before.process_seconds
        )
        return max(0.0, work / (self.wall_seconds - before.wall_seconds))
