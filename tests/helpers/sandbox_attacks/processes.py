"""Attacks with processes: more of them, those of others, identity, priority."""

from tests.helpers.sandbox_attacks.attack import BUBBLEWRAP, CONTAINER, Attack, LoneAttack

HOST_KERNEL = (BUBBLEWRAP, CONTAINER)
FORK = "pid = {}\nif not pid: os._exit(0)\nos.waitpid(pid, 0)"

ATTACKS = (
    Attack("fork", FORK.format("os.fork()"), is_allowed_to_programs=True),
    Attack(
        "fork with clone",
        FORK.format('call("clone", signal.SIGCHLD, 0, 0, 0, 0)'),
        is_allowed_to_programs=True,
    ),
    Attack(
        "fork with clone3",
        "arguments = ctypes.create_string_buffer(struct.pack('<8Q', 0, 0, 0, 0, "
        "17, 0, 0, 0))\n" + FORK.format('call("clone3", ctypes.addressof(arguments), 64)'),
    ),
    Attack("fork with the call fork", FORK.format('call("fork")'), is_allowed_to_programs=True),
    Attack(
        "fork 50 times",
        "pids = []\n"
        "for _ in range(50):\n"
        "    pid = os.fork()\n"
        "    if not pid: os._exit(0)\n"
        "    pids.append(pid)\n"
        "for pid in pids: os.waitpid(pid, 0)",
    ),
    Attack(
        "fork twice and leave the session",
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os.setsid()\n"
        "    os.fork()\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)",
        is_allowed_to_programs=True,
    ),
    Attack(
        "fork with a terminal",
        "pid, fd = os.forkpty()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)",
        backends=HOST_KERNEL,
    ),
    Attack(
        "spawn",
        "os.waitpid(os.posix_spawn('/usr/bin/env', ['env'], {}, "
        "file_actions=[(os.POSIX_SPAWN_CLOSE, 1)]), 0)",
        is_allowed_to_programs=True,
    ),
    Attack(
        "subprocess",
        "subprocess.run(['/usr/bin/env'], capture_output=True, check=True)",
        is_allowed_to_programs=True,
    ),
    Attack("shell", "assert os.system('true') == 0", is_allowed_to_programs=True),
    Attack("popen", "os.popen('true').close()", is_allowed_to_programs=True),
    Attack(
        "multiprocessing",
        "p = multiprocessing.get_context('fork').Process(target=int); p.start(); "
        "p.join(); assert p.exitcode == 0",
        is_allowed_to_programs=True,
    ),
    Attack(
        "start 200 threads",
        "threading.stack_size(65536)\n"
        "end = threading.Event()\n"
        "threads = [threading.Thread(target=end.wait, daemon=True) for _ in "
        "range(200)]\n"
        "try:\n"
        "    for t in threads: t.start()\n"
        "finally: end.set()",
        ("RuntimeError",),
        HOST_KERNEL,
    ),
    Attack("see the process that starts the sandbox", 'os.kill(P["driver_pid"], 0)'),
    Attack(
        "find the sandbox's launcher by its name",
        "names = [read(f'/proc/{p}/cmdline') for p in os.listdir('/proc') if "
        "p.isdigit()]\n"
        "assert any(P['marker'].encode() in name for name in names)",
    ),
    Attack(
        "trace process 1",
        'reach("ptrace", 16, 1, 0, 0)\nos.waitpid(1, 1 << 30)\ncall("ptrace", 17, 1, 0, 0)',
    ),
    Attack("be traced", 'reach("ptrace", 0, 0, 0, 0)'),
    Attack("seize process 1", 'reach("ptrace", 0x4206, 1, 0, 0)'),
    Attack("read the memory of a process", 'reach("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0)'),
    Attack(
        "write the memory of a process", 'reach("process_vm_writev", os.getpid(), 0, 0, 0, 0, 0)'
    ),
    Attack("open a process", 'os.close(call("pidfd_open", os.getpid(), 0))'),
    Attack("signal through a descriptor", 'reach("pidfd_send_signal", -1, 0, 0, 0)'),
    Attack("take a descriptor of a process", 'reach("pidfd_getfd", -1, 0, 0)'),
    Attack("compare processes", 'reach("kcmp", os.getpid(), os.getpid(), 0, 0, 1)'),
    Attack("release the memory of a process", 'reach("process_mrelease", -1, 0)'),
    Attack("advise a process", 'reach("process_madvise", -1, 0, 0, 0, 0)'),
    Attack(
        "allow to be traced",
        "LIBC.prctl(0x59616D61, -1, 0, 0, 0)\nassert ctypes.get_errno() in (0, errno.EINVAL)",
    ),
    Attack("become dumpable", "assert LIBC.prctl(4, 1, 0, 0, 0) == 0"),
    Attack("become a subreaper", "assert LIBC.prctl(36, 1, 0, 0, 0) == 0"),
    Attack("change the signal at the parent's end", "assert LIBC.prctl(1, 0, 0, 0, 0) == 0"),
    Attack("become root", "assert os.getuid() == 0 or os.setuid(0)"),
    Attack("become the group root", "os.setgid(0)"),
    Attack("set groups", "os.setgroups([0])"),
    Attack("become the file user root", 'reach("setfsuid", 0)'),
    Attack(
        "have capabilities",
        "buffer = ctypes.create_string_buffer(24)\n"
        "header = ctypes.create_string_buffer(struct.pack('<Ii', 0x20080522, 0))\n"
        "call('capget', ctypes.addressof(header), ctypes.addressof(buffer))\n"
        "assert any(buffer.raw)",
    ),
    Attack("set capabilities", 'reach("capset", 0, 0)'),
    Attack("raise the priority", "os.setpriority(os.PRIO_PROCESS, 0, -5)", backends=HOST_KERNEL),
    Attack("run in real time", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"),
    Attack("choose the processors", "os.sched_setaffinity(0, os.sched_getaffinity(0))"),
    Attack("choose the priority of input and output", 'call("ioprio_set", 1, 0, 0x4007)'),
    *(
        Attack(
            f"raise the limit {name}",
            f"resource.setrlimit(resource.RLIMIT_{name}, ({value}, {value}))",
            ("ValueError", "OSError"),
        )
        for name, value in (
            ("AS", 1 << 34),
            ("CPU", 999),
            ("FSIZE", 1 << 30),
            ("NOFILE", 65),
            ("MEMLOCK", 4096),
            ("CORE", 2),
        )
    ),
    Attack(
        "raise the limit of threads",
        "resource.setrlimit(resource.RLIMIT_NPROC, (1100, 1100))",
        ("ValueError", "OSError"),
        HOST_KERNEL,
    ),
)

LONE_ATTACKS = (
    LoneAttack(
        "keep the limits away from another program",
        "import os, sys\n"
        "os.execv(sys.executable, ['python', '-I', '-c', 'import mmap; "
        "mmap.mmap(-1, 1 << 32); print(12321)'])",
        "Cannot allocate memory|MemoryError",
        "12321",
    ),
    LoneAttack(
        "start a process from another program",
        "import os, sys\n"
        "os.execv(sys.executable, ['python', '-I', '-c', 'import os; os.fork(); "
        "print(12321)'])",
        "Operation not permitted",
        "12321",
        is_allowed_to_programs=True,
    ),
    LoneAttack(
        "run a 32-bit system call",
        "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(bytes.fromhex('b814000000cd80c3'))\n"  # mov eax, 20 (getpid); int 0x80; ret
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "print('pid', f() > 0, flush=True)",
        r"\(ended with 1[345]\d\)$|pid False",
        "pid True",
        (BUBBLEWRAP, CONTAINER),
    ),
)
