"""Attacks through system calls of the kernel that no program needs.

In the controls root makes the same calls: their arguments are invalid wherever a valid call would
change the machine, so that the control ends with another error than the sandbox.
"""

from tests.helpers.sandbox_attacks.attack import Attack

USERNS, NEWNS, NEWNET, NEWPID = 0x10000000, 0x00020000, 0x40000000, 0x20000000
# name of the call and arguments; -1 is a bad pointer or descriptor
CALLS = (
    *(("unshare", flag) for flag in (USERNS, NEWNS, NEWNET, NEWPID, USERNS | NEWNS)),
    *(("setns", -1, 0), ("mount", -1, -1, -1, 0, 0), ("umount2", -1, 0), ("pivot_root", -1, -1)),
    *(("chroot", -1), ("fsopen", -1, 0), ("fsconfig", -1, 0, 0, 0, 0), ("fsmount", -1, 0, 0)),
    *(("fspick", -1, -1, 0), ("open_tree", -1, -1, 0), ("move_mount", -1, -1, -1, -1, 0)),
    *(("mount_setattr", -1, -1, 0, 0, 0), ("quotactl", -1, -1, 0, 0), ("swapon", -1, 0)),
    *(("swapoff", -1), ("acct", -1), ("reboot", 0, 0, 0, 0), ("sethostname", -1, 5)),
    *(("setdomainname", -1, 5), ("kexec_load", 0, 0, 0, 99), ("init_module", -1, 0, -1)),
    *(("finit_module", -1, -1, 0), ("delete_module", -1, 0), ("syslog", 10, 0, 0)),
    *(("add_key", -1, -1, -1, 0, 0), ("request_key", -1, -1, -1, 0), ("keyctl", 0, -3, 0)),
    *(("keyctl", 6, -3, 0, 0), ("bpf", 0, -1, 0), ("perf_event_open", -1, 0, -1, -1, 0)),
    *(
        ("io_uring_setup", 1, -1),
        ("io_uring_enter", -1, 0, 0, 0, 0),
        ("io_uring_register", -1, 0, 0, 0),
    ),
    *(("userfaultfd", 0x80000), ("personality", 0xFFFFFFFF), ("personality", 0x0040000)),
    *(("modify_ldt", 0, 0, 0), ("iopl", 0), ("ioperm", 0, 0, 0)),
    *(
        ("open_by_handle_at", -1, -1, 0),
        ("lookup_dcookie", 0, -1, 0),
        ("fanotify_mark", -1, 0, 0, 0, 0),
    ),
    *(
        ("seccomp", 2, 0, 0),
        ("landlock_create_ruleset", 0, 0, 1),
        ("landlock_restrict_self", -1, 0),
    ),
    *(("get_mempolicy", 0, 0, 0, 0, 0), ("mbind", 0, 0, 0, 0, 0, 0), ("set_mempolicy", 0, 0, 0)),
    *(("move_pages", 0, 0, 0, 0, 0, 0), ("migrate_pages", 0, 0, 0, 0), ("settimeofday", -1, 0)),
    *(("clock_settime", 0, -1), ("mknodat", -1, -1, 0o10600, 0), ("io_submit", 0, 0, 0)),
    *(("statmount", 0, 0, 0, 0), ("listmount", 0, 0, 0, 0), ("lsm_list_modules", 0, 0, 0)),
    *(("setuid", 0), ("setresuid", -1, -1, -1), ("setgroups", 0, 0)),
)

ATTACKS = (
    *(
        Attack(f"call {name}{arguments}", f"reach({name!r}, *{arguments!r})", is_optional=True)
        for name, *arguments in CALLS
    ),
    Attack(
        "push input to a terminal",
        "assert LIBC.ioctl(0, 0x5412, b'x') == 0 or ctypes.get_errno() not in "
        "(errno.EPERM, errno.ENOSYS)",
    ),
    Attack(
        "use the console's clipboard",
        "assert LIBC.ioctl(0, 0x541C, b'x') == 0 or ctypes.get_errno() not in "
        "(errno.EPERM, errno.ENOSYS)",
    ),
    Attack(
        "share blocks of files",
        "assert LIBC.ioctl(0, 0xC0189436, b'x' * 64) == 0 or ctypes.get_errno() "
        "not in (errno.EPERM, errno.ENOSYS)",
    ),
    Attack(
        "add a filter of system calls",
        "assert LIBC.prctl(22, 2, 0, 0, 0) == 0 or ctypes.get_errno() not in "
        "(errno.EPERM, errno.ENOSYS)",
    ),
    Attack("keep capabilities", "assert LIBC.prctl(8, 1, 0, 0, 0) == 0"),
    Attack("raise an ambient capability", "assert LIBC.prctl(47, 4, 0, 0, 0) == 0"),
    Attack("read a key of the session", "assert call('keyctl', 0, -3, 1) > 0"),
    Attack("make a key", "assert call('add_key', b'user', b'grupo', b'x', 1, -1) > 0"),
    Attack(
        "mount a temporary file system",
        "pid = os.fork()\n"
        "if not pid: os._exit(LIBC.unshare(0x00020000) or LIBC.mount(b'x', "
        "b'/mnt', b'tmpfs', 0, 0))\n"
        "assert os.waitpid(pid, 0)[1] == 0",
    ),
    Attack(
        "chroot out of the root",
        "pid = os.fork()\n"
        "if not pid:\n"
        "    try: os.chroot('/')\n"
        "    except OSError: os._exit(1)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(pid, 0)[1] == 0",
    ),
)
