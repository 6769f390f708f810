"""Attacks on files: secrets, other rollouts, the system's folders, quotas."""

from tests.helpers.sandbox_attacks.attack import BUBBLEWRAP, CONTAINER, Attack

HOST_KERNEL = (BUBBLEWRAP, CONTAINER)
PLANTED = ("ssh_key", "aws_credentials", "hf_token", "run_journal", "grader_tests", "other_rollout")
SYSTEM_FILES = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/hosts", "/etc/fstab")
SYSTEM_FOLDERS = ("/home", "/var/log", "/var/lib/dpkg", "/run/lock", "/boot", "/opt", "/etc/ssl")
READ_ONLY = ("/", "/usr", "/usr/bin", "/usr/lib", "/dev")
DEVICES = ("mem", "port", "kmsg", "vda", "kvm", "loop-control", "tty0", "rtc0")
EMULATED_DEVICES = ("fuse", "net/tun")  # gVisor has its own
PROC_FILES = ("maps", "mem", "cmdline", "status", "environ", "auxv", "mountinfo", "stack")
SENSITIVE_PROC = ("kallsyms", "kcore", "keys", "timer_list", "sched_debug", "modules")
SETTINGS = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches"),
    *("/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/fs/file-max"),
    *("/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/overcommit_memory"),
)
SECRET = 'assert P["secret_in_files"].encode() in'

ATTACKS = (
    *(Attack(f"read {name}", f'{SECRET} read(P["planted"]["{name}"])') for name in PLANTED),
    *(
        Attack(f"read {path}", f"read({path!r})", backends=(BUBBLEWRAP,), is_optional=True)
        for path in SYSTEM_FILES
    ),
    *(
        Attack(f"list {path}", f"os.listdir({path!r})", backends=(BUBBLEWRAP,), is_optional=True)
        for path in SYSTEM_FOLDERS
    ),
    *(Attack(f"create a file in {path}", f"temporary_file_in({path!r})") for path in READ_ONLY),
    Attack("write a file of the standard library", "open(os.__file__, 'r+').close()"),
    Attack("write a cached module", "temporary_file_in(os.path.dirname(os.__file__))"),
    Attack("write the interpreter's folder", "temporary_file_in(os.path.dirname(sys.executable))"),
    *(
        Attack(f"open /dev/{name}", f"os.open('/dev/{name}', os.O_RDONLY)", is_optional=True)
        for name in DEVICES
    ),
    *(
        Attack(
            f"open /dev/{name}",
            f"os.open('/dev/{name}', os.O_RDONLY)",
            backends=HOST_KERNEL,
            is_optional=True,
        )
        for name in EMULATED_DEVICES
    ),
    Attack(
        "open the terminal multiplexer", "os.open('/dev/ptmx', os.O_RDWR)", backends=(BUBBLEWRAP,)
    ),
    Attack("use /dev/shm", "temporary_file_in('/dev/shm')", backends=(BUBBLEWRAP,)),
    *(
        Attack(f"open /proc/1/{name}", f"os.open('/proc/1/{name}', 0)", backends=(BUBBLEWRAP,))
        for name in PROC_FILES
    ),
    *(
        Attack(
            f"read kernel file {name}",
            f"assert read('/proc/{name}')",
            backends=(BUBBLEWRAP,),
            is_optional=True,
        )
        for name in SENSITIVE_PROC
    ),
    *(
        Attack(f"open {path} for writing", f"open_for_writing({path!r})", is_optional=True)
        for path in SETTINGS
    ),
    Attack(
        "read own memory as a file", "os.open('/proc/self/mem', os.O_RDWR)", backends=(BUBBLEWRAP,)
    ),
    Attack("list own file descriptors", "os.listdir('/proc/self/fd')", backends=(BUBBLEWRAP,)),
    Attack("list mounts", "assert read('/proc/mounts')", backends=(BUBBLEWRAP,)),
    Attack("list /sys", "assert os.listdir('/sys/kernel')", backends=(BUBBLEWRAP,)),
    Attack(
        "write a cgroup",
        "temporary = '/sys/fs/cgroup/memory/grupo-attack'\n"
        "os.mkdir(temporary); os.rmdir(temporary)",
        is_optional=True,
    ),
    Attack(
        "write the cgroup of devices",
        "open_for_writing('/sys/fs/cgroup/devices/cgroup.procs')",
        is_optional=True,
    ),
    Attack(
        "write a release agent",
        "open_for_writing('/sys/fs/cgroup/memory/release_agent')",
        is_optional=True,
    ),
    Attack(
        "write the uevent helper", "open_for_writing('/sys/kernel/uevent_helper')", is_optional=True
    ),
    Attack("write the power state", "open_for_writing('/sys/power/state')", is_optional=True),
    Attack("climb with ..", f'{SECRET} read("../" * 40 + P["planted"]["ssh_key"])'),
    Attack(
        "through a symbolic link",
        f'name = tempfile.mktemp(); os.symlink(P["planted"]["ssh_key"], name)\n{SECRET} read(name)',
    ),
    Attack(
        "through a symbolic link to the root",
        'name = tempfile.mktemp(); os.symlink("/", name)\n'
        f'{SECRET} read(name + P["planted"]["ssh_key"])',
    ),
    Attack(
        "through a hard link",
        'name = P["hard_link"]; os.link(P["planted"]["ssh_key"], name); os.unlink(name)',
    ),
    *(
        Attack(f"through {folder}", f'{SECRET} read("{folder}" + P["planted"]["ssh_key"])')
        for folder in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../../../../..")
    ),
    Attack(
        "with openat2",
        'path = P["planted"]["ssh_key"].encode()\n'
        "how = ctypes.create_string_buffer(24)\n"
        'os.close(call("openat2", -100, path, ctypes.addressof(how), 24))',
    ),
    Attack(
        "with a directory descriptor",
        'fd = os.open("/", 0)\nname = os.open(P["planted"]["ssh_key"][1:], 0, dir_fd=fd)\n'
        f"{SECRET} os.read(name, 99)",
    ),
    Attack("change to the folder of secrets", 'os.chdir(os.path.dirname(P["planted"]["ssh_key"]))'),
    Attack("read this test", 'assert b"def test_" in read(P["test_file"])'),
    Attack("read the package", 'assert b"grupo" in read(P["package_file"])'),
    Attack(
        "use an inherited file",
        "assert [fd for fd in range(3, 64) if LIBC.fcntl(fd, 1) != -1 and "
        "stat.S_ISREG(os.fstat(fd).st_mode)]",
    ),
    Attack(
        "get notices of changes in a folder of the machine",
        "import fcntl\n"
        "fd = os.open('/usr', 0); fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_RENAME); os.close(fd)",
        backends=HOST_KERNEL,
    ),
    Attack(
        "find a host file behind the output",
        "assert stat.S_ISREG(os.fstat(1).st_mode)",
        is_allowed_to_programs=True,
    ),
    Attack(
        "fill the disk",
        "folder = tempfile.mkdtemp()\n"
        "for i in range(9): open(f'{folder}/{i}', 'wb').write(bytes((1 << 20) - "
        "9))",
    ),
    Attack(
        "use all inodes",
        "folder = tempfile.mkdtemp()\nfor i in range(5000): os.mkdir(f'{folder}/{i}')",
        backends=(BUBBLEWRAP,),
    ),
    Attack("write a large file", "open(tempfile.mktemp(), 'wb').write(bytes(1 << 22))\nassert 1"),
    Attack("make a sparse file of 1 TB", "os.truncate(tempfile.mkstemp()[1], 1 << 40)"),
    Attack("allocate a large file", "os.posix_fallocate(tempfile.mkstemp()[0], 0, 1 << 22)"),
    Attack("make a FIFO", "os.mkfifo(tempfile.mktemp())"),
    Attack(
        "make a device node", "os.mknod(tempfile.mktemp(), stat.S_IFCHR | 0o666, os.makedev(1, 3))"
    ),
    Attack(
        "make a block device node",
        "os.mknod(tempfile.mktemp(), stat.S_IFBLK | 0o666, os.makedev(254, 0))",
    ),
    Attack("give a file to root", "os.chown(tempfile.mkstemp()[1], 0, 0)"),
    Attack(
        "get a handle of a file",
        "handle = ctypes.create_string_buffer(256); handle[0] = b'\\x80'\n"
        "mount = ctypes.c_int()\n"
        "call('name_to_handle_at', -100, b'/', ctypes.addressof(handle), "
        "ctypes.addressof(mount), 0)",
    ),
)
