"""Returns memory that this process has freed to the operating system, with glibc."""

import ctypes

KEPT_BYTES = 1 << 28  # of free memory, which later steps reuse without page faults


class _HeapStatistics(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def trim_heap() -> None:
    """Return free memory of the heap to the operating system, if it is more than `KEPT_BYTES`.

    The C library keeps what lies between tensors that are still in use, such as freed gradients
    between the states of an optimizer. Does nothing if the C library is not glibc 2.33 or later.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2") and hasattr(libc, "malloc_trim"):
        libc.mallinfo2.restype = _HeapStatistics
        if libc.mallinfo2().fordblks > KEPT_BYTES:
            libc.malloc_trim(0)
