"""Filters of system calls."""

import errno
import platform
import struct

import pytest

from grupo.envs.tools import seccomp
from grupo.envs.tools.syscalls import ALLOWED, CONDITIONS, DENIED, ONE_PROCESS, syscall_rules
from grupo.util.errors import ConfigError

X86_64 = 0xC000003E
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
CLONE_THREAD, CLONE_NEWUSER = 0x00010000, 0x10000000
F_DUPFD, F_SETLK, F_NOTIFY = 0, 6, 1026
OPERATORS = {
    0x15: lambda value, operand: value == operand,
    0x25: lambda value, operand: value > operand,
    0x35: lambda value, operand: value >= operand,
    0x45: lambda value, operand: bool(value & operand),
}


@pytest.fixture
def libseccomp():
    """Skips the test on machines without libseccomp."""
    try:
        seccomp.bpf_filter(allows_processes=False)
    except ConfigError as error:
        pytest.skip(str(error))


def run_filter(
    number: int, *arguments: int, architecture: int, allows_processes: bool = False
) -> int:
    """The action of the filter: an interpreter of the classic BPF instructions that it has."""
    values = [value % (1 << 64) for value in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("<iIQ6Q", number, architecture, 0, *values)
    bpf = seccomp.bpf_filter(allows_processes=allows_processes)
    instructions = list(struct.iter_unpack("<HBBI", bpf))
    position = accumulator = 0
    while True:
        code, on_true, on_false, operand = instructions[position]
        position += 1
        if code == 0x20:  # load a word
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:  # and
            accumulator &= operand
        elif code == 0x05:  # jump
            position += operand
        elif code == 0x06:  # return
            return operand
        else:
            position += on_true if OPERATORS[code](accumulator, operand) else on_false


def action(name: str, *arguments: int, allows_processes: bool = False) -> int:
    number = seccomp.syscall_number(name)
    assert number is not None
    architecture = {"x86_64": X86_64, "aarch64": 0xC00000B7}[platform.machine()]
    return run_filter(
        number, *arguments, architecture=architecture, allows_processes=allows_processes
    )


@pytest.mark.usefixtures("libseccomp")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("read",), ALLOW),
        (("mmap",), ALLOW),
        (("clone", CLONE_THREAD), ALLOW),
        (("clone", 17), ERRNO | errno.EPERM),
        (("clone", CLONE_NEWUSER), ERRNO | errno.EPERM),
        (("clone", CLONE_THREAD | CLONE_NEWUSER), ERRNO | errno.ENOSYS),
        (("clone3",), ERRNO | errno.ENOSYS),
        (("ptrace",), ERRNO | errno.EPERM),
        (("socket", 1, 1), ERRNO | errno.EPERM),
        (("socketpair", 1, 1), ALLOW),
        (("socketpair", 1, 1 | 0o2000000), ALLOW),
        (("socketpair", 1, 2), ERRNO | errno.ENOSYS),
        (("socketpair", 40, 1), ERRNO | errno.ENOSYS),
        (("ioctl", 0, 0x5401), ALLOW),
        (("ioctl", 0, 0x5412), ERRNO | errno.ENOSYS),
        (("ioctl", 0, 0x5412 | 1 << 32), ERRNO | errno.ENOSYS),
        (("fcntl", 0, F_DUPFD), ALLOW),
        (("fcntl", 0, F_SETLK), ERRNO | 0),
        (("fcntl", 0, F_SETLK | 1 << 32), ERRNO | 0),
        (("fcntl", 0, F_NOTIFY), ERRNO | errno.ENOSYS),
        (("flock", 0, 2), ERRNO | 0),
        (("prctl", 15), ALLOW),
        (("prctl", 4), ERRNO | errno.ENOSYS),
        (("keyctl",), ERRNO | errno.ENOSYS),
        (("userfaultfd",), ERRNO | errno.ENOSYS),
        (("io_uring_setup",), ERRNO | errno.ENOSYS),
    ],
)
def test_the_filter_decides_by_the_call_and_its_arguments(call, expected):
    assert action(*call) == expected


@pytest.mark.usefixtures("libseccomp")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("clone", 17), ALLOW),
        (("clone", CLONE_THREAD), ALLOW),
        (("fork",), ALLOW),
        (("vfork",), ALLOW),
        (("clone", CLONE_NEWUSER), ERRNO | errno.ENOSYS),
        (("clone3",), ERRNO | errno.ENOSYS),
        (("ptrace",), ERRNO | errno.EPERM),
        (("process_vm_readv",), ERRNO | errno.EPERM),
        (("socket", 1, 1), ERRNO | errno.EPERM),
        (("shmget",), ERRNO | errno.EPERM),
    ],
)
def test_a_filter_for_several_processes_allows_them_and_nothing_more(call, expected):
    if seccomp.syscall_number(call[0]) is None:
        pytest.skip(f"this processor has no {call[0]}")
    assert action(*call, allows_processes=True) == expected


def test_rules_for_several_processes_differ_in_the_calls_that_start_them_alone():
    one, several = (syscall_rules(allows_processes=x) for x in (False, True))
    assert several.allowed - one.allowed == one.denied - several.denied == {"fork", "vfork"}
    assert one.allowed < several.allowed
    changed = set(one.conditions) ^ set(several.conditions)
    assert {condition.syscall for condition in changed} == {"clone"}


@pytest.mark.usefixtures("libseccomp")
def test_every_denied_call_returns_an_error_and_every_allowed_one_is_made():
    actions = {
        is_allowed: {action(name) for name in names if seccomp.syscall_number(name) is not None}
        for is_allowed, names in ((True, ALLOWED), (False, frozenset().union(*DENIED.values())))
    }
    assert actions == {True: {ALLOW}, False: {ERRNO | errno.EPERM}}


@pytest.mark.usefixtures("libseccomp")
def test_calls_of_another_architecture_and_unknown_calls_are_not_made():
    architecture = {"x86_64": X86_64, "aarch64": 0xC00000B7}[platform.machine()]
    i386 = 0x40000003
    assert run_filter(20, architecture=i386) & 0xFFFF0000 != ALLOW
    assert run_filter(4000, architecture=architecture) == ERRNO | errno.ENOSYS
    x32_getpid = 0x40000000 | 39
    assert run_filter(x32_getpid, architecture=architecture) != ALLOW


def test_no_call_is_in_two_lists():
    denied = [name for names in DENIED.values() for name in names]
    conditional = {condition.syscall for condition in CONDITIONS}
    assert len(denied) == len(set(denied))
    assert not ALLOWED & {*denied, *conditional}
    assert not conditional & set(denied)
    assert len(ALLOWED) > 240


def test_the_oci_profile_has_the_rules_of_the_filter():
    profile = seccomp.oci_profile("clone3", allows_processes=False)
    rules = [(rule["action"], name) for rule in profile["syscalls"] for name in rule["names"]]
    assert ("SCMP_ACT_ALLOW", "clone3") in rules
    assert ("SCMP_ACT_ERRNO", "ptrace") in rules
    conditions = len(ONE_PROCESS) + len(CONDITIONS)
    assert len(rules) == len(ALLOWED) + 1 + sum(map(len, DENIED.values())) + conditions
    clone = next(rule for rule in profile["syscalls"] if rule["names"] == ["clone"])
    assert clone["args"][0]["valueTwo"] == CLONE_THREAD
    assert profile["defaultErrnoRet"] == errno.ENOSYS


def test_a_machine_without_libseccomp_is_refused(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    seccomp._libseccomp.cache_clear()
    monkeypatch.setattr(seccomp.ctypes, "CDLL", missing)
    with pytest.raises(ConfigError, match=r"^sandbox: libseccomp is not installed: libseccomp\.so"):
        seccomp.syscall_number("read")
    seccomp._libseccomp.cache_clear()
