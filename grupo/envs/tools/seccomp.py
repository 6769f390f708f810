"""A filter of system calls under which a process can have threads, but no other process."""

import platform
import struct

from grupo.core.errors import ConfigError

# of each machine: what it is called in a filter; its numbers of clone; of what is denied: fork,
# vfork, and what holds memory beyond a process's own: shmget, msgget, semget, io_uring_setup
ARCHITECTURES = {
    "x86_64": (0xC000003E, 56, (57, 58, 29, 68, 64, 425)),
    "aarch64": (0xC00000B7, 220, (194, 186, 190, 425)),
}
CLONE3_SYSCALL = 435  # everywhere
SECCOMP_ALLOW, SECCOMP_KILL, SECCOMP_EPERM, SECCOMP_ENOSYS = (
    0x7FFF0000,
    0x80000000,
    0x00050001,
    0x00050026,
)
BPF_LOAD, BPF_JUMP_EQUAL, BPF_JUMP_GE, BPF_JUMP_SET, BPF_RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
SYSCALL_OFFSET, ARCH_OFFSET, ARG0_OFFSET = 0, 4, 16  # where these lie in what a filter is shown
CLONE_THREAD = 0x00010000  # the flag with which clone makes a thread
X32_SYSCALL_BIT = 0x40000000  # numbers from here on are another way to call the same


def single_process_filter() -> bytes:
    """The filter for this machine, as the kernel reads it: struct sock_filter one after another.

    clone3 hides its flags from filters: it is said not to exist, and libraries then use clone.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise ConfigError(
            f"sandbox: no filter for {machine!r}. Allowed: {', '.join(ARCHITECTURES)}."
        )
    name, clone, denied = ARCHITECTURES[machine]
    program = [
        (BPF_LOAD, 0, 0, ARCH_OFFSET),
        (BPF_JUMP_EQUAL, 1, 0, name),
        (BPF_RETURN, 0, 0, SECCOMP_KILL),
        (BPF_LOAD, 0, 0, SYSCALL_OFFSET),
        *_return_if(BPF_JUMP_GE, X32_SYSCALL_BIT, SECCOMP_ENOSYS),
        *_return_if(BPF_JUMP_EQUAL, CLONE3_SYSCALL, SECCOMP_ENOSYS),
        *(step for call in denied for step in _return_if(BPF_JUMP_EQUAL, call, SECCOMP_EPERM)),
        (BPF_JUMP_EQUAL, 1, 0, clone),
        (BPF_RETURN, 0, 0, SECCOMP_ALLOW),
        (BPF_LOAD, 0, 0, ARG0_OFFSET),
        *_return_if(BPF_JUMP_SET, CLONE_THREAD, SECCOMP_ALLOW),
        (BPF_RETURN, 0, 0, SECCOMP_EPERM),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in program)


def _return_if(test: int, value: int, action: int) -> tuple[tuple[int, int, int, int], ...]:
    return (test, 0, 1, value), (BPF_RETURN, 0, 0, action)
