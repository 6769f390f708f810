"""Filters of system calls, from the lists in `syscalls.py`.

libseccomp translates the names into the numbers of this machine and assembles the filter, as it
does for Docker, Podman and systemd. It is called through ctypes: its Python bindings on PyPI are
either without a release since 2021 or need a compiler.
"""

import ctypes
import errno
import tempfile
from functools import cache, lru_cache
from typing import Any

from grupo.envs.tools.syscalls import Condition, syscall_rules
from grupo.util.errors import ConfigError

ACT_ALLOW = 0x7FFF0000
ACT_ERRNO = 0x00050000
CMP_MASKED_EQ = 7
FILTER_OPTIMIZE = 8  # attribute of a filter; 2 is a binary tree instead of a list


class ArgumentComparison(ctypes.Structure):
    """`struct scmp_arg_cmp` of libseccomp."""

    _fields_ = (
        ("index", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


@lru_cache(maxsize=2)
def bpf_filter(*, allows_processes: bool) -> bytes:
    """The filter for this machine, as an array of `struct sock_filter`.

    Calls of another architecture, such as 32-bit ones on x86-64, kill the program.

    Args:
        allows_processes: Whether the program may start processes.

    Raises:
        ConfigError: libseccomp is not installed.
    """
    library = _libseccomp()
    context = library.seccomp_init(ACT_ERRNO | errno.ENOSYS)
    try:
        library.seccomp_attr_set(context, FILTER_OPTIMIZE, 2)
        rules = syscall_rules(allows_processes=allows_processes)
        for name in sorted(rules.allowed):
            _add_rule(context, Condition(name, ()))
        for name in sorted(rules.denied):
            _add_rule(context, Condition(name, (), error=errno.EPERM))
        for condition in rules.conditions:
            _add_rule(context, condition)
        with tempfile.TemporaryFile() as file:
            _check_result(library.seccomp_export_bpf(context, file.fileno()), "export")
            file.seek(0)
            return file.read()
    finally:
        library.seccomp_release(context)


def syscall_number(name: str) -> int | None:
    """The number of a system call on this machine; None if it does not have the call."""
    number = _libseccomp().seccomp_syscall_resolve_name(name.encode())
    return number if number >= 0 else None


def oci_profile(*more_allowed: str, allows_processes: bool) -> dict[str, Any]:
    """The same filter as the `linux.seccomp` object of the OCI runtime specification.

    Docker and Podman read it as a file, gVisor as a part of `config.json`.

    Args:
        more_allowed: Names of further allowed calls.
        allows_processes: Whether the program may start processes.
    """
    rules = syscall_rules(allows_processes=allows_processes)
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "syscalls": [
            _oci_rule(sorted({*rules.allowed, *more_allowed})),
            _oci_rule(sorted(rules.denied), errno.EPERM),
            *map(_oci_condition, rules.conditions),
        ],
    }


def _oci_rule(names: list[str], error: int | None = None) -> dict[str, Any]:
    if error is None:
        return {"names": names, "action": "SCMP_ACT_ALLOW"}
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error}


def _oci_condition(condition: Condition) -> dict[str, Any]:
    comparisons = [
        {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
        for index, mask, value in condition.arguments
    ]
    return {**_oci_rule([condition.syscall], condition.error), "args": comparisons}


def _add_rule(context: int, condition: Condition) -> None:
    """Adds a rule to a filter; a call that this machine or libseccomp does not know has none."""
    number = syscall_number(condition.syscall)
    if number is None:
        return
    comparisons = [
        ArgumentComparison(index, CMP_MASKED_EQ, mask, value)
        for index, mask, value in condition.arguments
    ]
    action = ACT_ALLOW if condition.error is None else ACT_ERRNO | condition.error
    array = (ArgumentComparison * len(comparisons))(*comparisons)
    result = _libseccomp().seccomp_rule_add_array(context, action, number, len(array), array)
    _check_result(result, condition.syscall)


def _check_result(result: int, step: str) -> None:
    if result < 0:
        raise OSError(-result, f"libseccomp: {step}")


@cache
def _libseccomp() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise ConfigError(
            f"sandbox: libseccomp is not installed: {error}. Install libseccomp2 (Debian, Ubuntu)"
            " or libseccomp (Fedora), or remove the tool."
        ) from error
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_rule_add_array.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint),
        ctypes.POINTER(ArgumentComparison),
    ]
    return library
