"""CPU load of other processes, which would distort the measurements."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
IDLE_FIELD, IOWAIT_FIELD = 3, 4  # indices of fields in the first line of /proc/stat


@dataclass(frozen=True)
class CpuClock:
    """Wall-clock seconds, busy seconds of all cores, and CPU seconds of one process."""

    wall_seconds: float
    cpu_seconds: float
    process_seconds: float

    @staticmethod
    def of(process: int) -> "CpuClock":
        """Read the clocks; `process` is a process id."""
        cpu_line = Path("/proc/stat").read_text().split("\n", 1)[0]
        ticks = [int(field) for field in cpu_line.split()[1:9]]
        busy_ticks = sum(ticks) - ticks[IDLE_FIELD] - ticks[IOWAIT_FIELD]
        process_fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        process_ticks = sum(map(int, process_fields[11:13]))
        return CpuClock(
            time.perf_counter(), busy_ticks / TICKS_PER_SECOND, process_ticks / TICKS_PER_SECOND
        )

    def other_cores(self, before: "CpuClock") -> float:
        """Return the mean number of cores busy with other processes since `before`."""
        busy_seconds = self.cpu_seconds - before.cpu_seconds
        own_seconds = self.process_seconds - before.process_seconds
        return max(0.0, (busy_seconds - own_seconds) / (self.wall_seconds - before.wall_seconds))
