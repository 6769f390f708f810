"""A filter of system calls under which a process can have threads, but no other process."""

import platform
import struct

from grupo.core.errors import Refused

# of each machine: what it is called in a filter; its numbers of clone; of what is denied: fork,
# vfork, and what holds memory beyond a process's own: shmget, msgget, semget, io_uring_setup
MACHINES = {
    "x86_64": (0xC000003E, 56, (57, 58, 29, 68, 64, 425)),
    "aarch64": (0xC00000B7, 220, (194, 186, 190, 425)),
}
CLONE3 = 435  # everywhere
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
LOAD, EQUAL, ABOVE, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, FIRST = 0, 4, 16  # where these lie in what a filter is shown
THREAD = 0x00010000  # the flag with which clone makes a thread
X32 = 0x40000000  # numbers from here on are another way to call the same


def one_process() -> bytes:
    """The filter for this machine, as the kernel reads it: struct sock_filter one after another.

    clone3 hides its flags from filters: it is said not to exist, and libraries then use clone.
    """
    machine = platform.machine()
    if machine not in MACHINES:
        raise Refused(f"sandbox: no filter for {machine!r}. Allowed: {', '.join(MACHINES)}.")
    name, clone, denied = MACHINES[machine]
    program = [
        (LOAD, 0, 0, MACHINE),
        (EQUAL, 1, 0, name),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        *_answering(ABOVE, X32, ENOSYS),
        *_answering(EQUAL, CLONE3, ENOSYS),
        *(step for call in denied for step in _answering(EQUAL, call, EPERM)),
        (EQUAL, 1, 0, clone),
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, FIRST),
        *_answering(BITS, THREAD, ALLOW),
        (RETURN, 0, 0, EPERM),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in program)


def _answering(test: int, value: int, answer: int) -> tuple[tuple[int, int, int, int], ...]:
    return (test, 0, 1, value), (RETURN, 0, 0, answer)
