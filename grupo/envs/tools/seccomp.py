"""A seccomp filter of system calls that allows a process threads, but no other processes."""

import platform
import struct

from grupo.core.errors import ConfigError

# per machine: its AUDIT_ARCH constant; the number of clone; the numbers of the denied calls: fork,
# vfork, and those that allocate memory outside of the process's limits: shmget, msgget, semget,
# io_uring_setup
ARCHITECTURES = {
    "x86_64": (0xC000003E, 56, (57, 58, 29, 68, 64, 425)),
    "aarch64": (0xC00000B7, 220, (194, 186, 190, 425)),
}
CLONE3_SYSCALL = 435  # on every machine
SECCOMP_ALLOW = 0x7FFF0000
SECCOMP_KILL = 0x80000000
SECCOMP_EPERM = 0x00050001
SECCOMP_ENOSYS = 0x00050026
BPF_LOAD = 0x20
BPF_JUMP_EQUAL = 0x15
BPF_JUMP_GE = 0x35
BPF_JUMP_SET = 0x45
BPF_RETURN = 0x06
# byte offsets in struct seccomp_data
SYSCALL_OFFSET = 0
ARCH_OFFSET = 4
ARG0_OFFSET = 16
CLONE_THREAD = 0x00010000  # the flag of clone that creates a thread
X32_SYSCALL_BIT = 0x40000000  # x32 numbers of the same system calls begin here


def single_process_filter() -> bytes:
    """The filter for this machine, as an array of struct sock_filter.

    A filter cannot read the flags of clone3, so clone3 returns ENOSYS and libraries use clone.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise ConfigError(
            f"sandbox: no filter for {machine!r}. Allowed: {', '.join(ARCHITECTURES)}."
        )
    audit_arch, clone, denied = ARCHITECTURES[machine]
    program = [
        (BPF_LOAD, 0, 0, ARCH_OFFSET),
        (BPF_JUMP_EQUAL, 1, 0, audit_arch),
        (BPF_RETURN, 0, 0, SECCOMP_KILL),
        (BPF_LOAD, 0, 0, SYSCALL_OFFSET),
        *_return_if(BPF_JUMP_GE, X32_SYSCALL_BIT, SECCOMP_ENOSYS),
        *_return_if(BPF_JUMP_EQUAL, CLONE3_SYSCALL, SECCOMP_ENOSYS),
        *_deny(denied),
        (BPF_JUMP_EQUAL, 1, 0, clone),
        (BPF_RETURN, 0, 0, SECCOMP_ALLOW),
        (BPF_LOAD, 0, 0, ARG0_OFFSET),
        *_return_if(BPF_JUMP_SET, CLONE_THREAD, SECCOMP_ALLOW),
        (BPF_RETURN, 0, 0, SECCOMP_EPERM),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _deny(syscalls: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    program: list[tuple[int, int, int, int]] = []
    for syscall in syscalls:
        program += _return_if(BPF_JUMP_EQUAL, syscall, SECCOMP_EPERM)
    return program


def _return_if(test: int, value: int, action: int) -> tuple[tuple[int, int, int, int], ...]:
    return (test, 0, 1, value), (BPF_RETURN, 0, 0, action)
