"""Resources that this process uses, sampled over a run, and their growth."""

import ctypes
import gc
import os
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy

Sample = Mapping[str, float]  # amount by resource; "at" is the number of steps or runs before it

_COUNTS = ("descriptors", "threads", "child_processes", "temporary_files")
# growth per step: 100 kB and half a descriptor in 1,000 steps
PER_STEP = {"resident_kb": 0.1, "heap_kb": 0.1, **dict.fromkeys(_COUNTS, 0.0005)}
# growth per run that is begun or resumed; loading a model of transformers alone keeps 4 kB
PER_RUN = {"resident_kb": 20.0, "heap_kb": 10.0, **dict.fromkeys(_COUNTS, 0.01)}
BYTES_PER_BLOCK = 64  # a typical small Python object
CHURNED_STRINGS = 1_000_000  # more than the table of interned strings has free slots


class _Mallinfo(ctypes.Structure):
    """The result of glibc's `mallinfo2`."""

    _names = (
        *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
        *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
    )
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def resize_interned_table() -> None:
    """Make CPython resize its table of interned strings now rather than within a measurement.

    Strings that come and go use up the free slots of the table, which then gets the size for three
    times its live strings: once some megabytes, and the same size at every later time.
    """
    for number in range(CHURNED_STRINGS):
        sys.intern(f"string {number}")


def heap_kb() -> float:
    """The memory in use by Python and by C, in kB; it hardly depends on how it is allocated."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _Mallinfo
    gc.collect()
    info = mallinfo()
    return (info.uordblks + info.hblkhd + BYTES_PER_BLOCK * sys.getallocatedblocks()) / 1000


def resource_use(at: int) -> Sample:
    """The resources in use after a number of steps or runs; unused memory is given back first.

    Temporary files are counted in the folder of `tempfile`, which must be the test's own.
    """
    heap = heap_kb()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    children = (task / "children" for task in Path("/proc/self/task").iterdir())
    return {
        "at": at,
        "resident_kb": float(status.partition("RssAnon:")[2].split()[0]),
        "heap_kb": heap,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "child_processes": sum(len(path.read_text().split()) for path in children),
        "temporary_files": sum(len(files) for _, _, files in os.walk(tempfile.gettempdir())),
    }


@contextmanager
def limited_peak(num_bytes: int) -> Generator[None]:
    """Fail if the memory of the process grows by more at any moment within the block."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins at what is in use now
    before = _peak_bytes()
    yield
    assert _peak_bytes() - before < num_bytes


def _peak_bytes() -> int:
    """The most memory that the process has had since the peak was reset."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def growth(samples: Sequence[Sample]) -> dict[str, float]:
    """The growth of each resource per step or run, by least squares, without the first quarter."""
    used = samples[len(samples) // 4 :]
    at = [sample["at"] for sample in used]
    return {
        name: float(numpy.polyfit(at, [sample[name] for sample in used], 1)[0]) for name in PER_STEP
    }


def excessive_growth(samples: Sequence[Sample], limits: Mapping[str, float]) -> dict[str, float]:
    """The resources that grow by more than their limit, with their growth."""
    return {name: slope for name, slope in growth(samples).items() if slope > limits[name]}
