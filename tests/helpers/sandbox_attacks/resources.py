"""Attacks on memory, processor time, wall-clock time and output."""

from tests.helpers.sandbox_attacks.attack import BUBBLEWRAP, CONTAINER, Attack, LoneAttack

HOST_KERNEL = (BUBBLEWRAP, CONTAINER)
MEMORY = ("OSError", "MemoryError", "ValueError")
TIMEOUT = r"\(stopped after [\d.]+ s\)"
RUNNING = r"\(still running\)"

ATTACKS = (
    Attack("map 4 GiB", "mmap.mmap(-1, 1 << 32)", MEMORY),
    Attack("map 4 GiB shared", "mmap.mmap(-1, 1 << 32, mmap.MAP_SHARED)", MEMORY),
    Attack("map 4 GiB of a device", "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 32)", MEMORY),
    Attack("allocate 1 GiB", "bytearray(1 << 30)", MEMORY),
    Attack(
        "allocate 1 GiB in pieces",
        "pieces = []\nfor _ in range(64): pieces.append(mmap.mmap(-1, 1 << 24))",
        MEMORY,
    ),
    Attack(
        "allocate with the C library",
        "LIBC.malloc.restype = ctypes.c_void_p\nassert LIBC.malloc(ctypes.c_size_t(1 << 30))",
    ),
    Attack(
        "grow the data segment",
        "LIBC.sbrk.restype = ctypes.c_ssize_t\nassert LIBC.sbrk(ctypes.c_ssize_t(1 << 30)) != -1",
    ),
    Attack("make a C array of 1 GiB", "(ctypes.c_char * (1 << 30))()", MEMORY),
    Attack("repeat a string", "'x' * (1 << 28)", MEMORY),
    Attack("lock memory", 'call("mlockall", 2)', backends=HOST_KERNEL),
    Attack("make a memory file", "os.close(os.memfd_create('x'))"),
    Attack(
        "fill a memory file",
        "fd = os.memfd_create('x'); os.write(fd, bytes(1 << 20)); os.close(fd)",
    ),
    Attack("make a secret memory file", 'os.close(call("memfd_secret", 0))'),
    Attack("shared memory of System V", 'call("shmctl", call("shmget", 0, 4096, 0o1600), 0, 0)'),
    Attack("messages of System V", 'call("msgctl", call("msgget", 0, 0o1600), 0, 0)'),
    Attack("semaphores of System V", 'call("semctl", call("semget", 0, 1, 0o1600), 0, 0)'),
    Attack(
        "a message queue",
        "call('mq_open', b'grupo', os.O_CREAT | os.O_RDWR, 0o600, 0); call('mq_unlink', b'grupo')",
    ),
    Attack(
        "an asynchronous input queue",
        "context = ctypes.c_ulong()\n"
        "call('io_setup', 1, ctypes.addressof(context)); call('io_destroy', "
        "context.value)",
    ),
    Attack("a watch of files", 'os.close(call("inotify_init1", 0))'),
    Attack("a watch of the file system", 'reach("fanotify_init", 0, 0)'),
    Attack("open 100 files", "fds = [os.open('/dev/null', 0) for _ in range(100)]"),
    Attack("open 100 pipes", "fds = [os.pipe() for _ in range(100)]"),
    Attack("open 100 polls", "import select\npolls = [select.epoll() for _ in range(100)]"),
    Attack("open 100 timers of files", "fds = [call('timerfd_create', 1, 0) for _ in range(100)]"),
    Attack(
        "make 100 timers",
        "timer = ctypes.c_int()\n"
        "for _ in range(100): call('timer_create', 1, 0, ctypes.addressof(timer))",
        backends=HOST_KERNEL,
    ),
    Attack(
        "queue 100 signals",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
        "buffer = ctypes.create_string_buffer(struct.pack('<3i', 40, 0, -1), "
        "128)\n"
        "for _ in range(100): call('rt_sigqueueinfo', os.getpid(), 40, "
        "ctypes.addressof(buffer))",
        backends=HOST_KERNEL,
    ),
    Attack("a user page fault handler", 'reach("userfaultfd", 1)'),
    Attack("splice pages into a pipe", 'reach("vmsplice", -1, 0, 0, 0)'),
    Attack("splice files", 'reach("splice", -1, 0, -1, 0, 1, 0)'),
    Attack("copy a pipe", 'reach("tee", -1, -1, 1, 0)'),
    Attack("flush the machine's disks", 'call("sync")'),
    Attack("flush a disk", 'reach("syncfs", -1)'),
)


def _endless(name: str, code: str) -> LoneAttack:
    return LoneAttack(name, code, TIMEOUT, RUNNING, is_endless=True)


LONE_ATTACKS = (
    _endless("loop", "while True: pass"),
    _endless("sleep", "import time; time.sleep(5)"),
    _endless("wait for a signal", "import signal\nsignal.alarm(5); signal.pause()"),
    _endless(
        "ignore SIGTERM",
        "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(5)",
    ),
    _endless(
        "block all signals",
        "import signal, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); time.sleep(5)",
    ),
    _endless(
        "leave the session",
        "import os, time\ntry: os.setsid()\nexcept OSError: pass\ntime.sleep(5)",
    ),
    _endless(
        "close the output and sleep", "import os, time\nos.close(1); os.close(2); time.sleep(5)"
    ),
    _endless("read more input", "import time, sys\nsys.stdin.read(); time.sleep(5)"),
    _endless(
        "deadlock", "import threading\nl = threading.Lock(); l.acquire(); l.acquire(timeout=5)"
    ),
    _endless(
        "wait for a thread",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(5,)).start()",
    ),
    _endless("sleep at exit", "import atexit, time\natexit.register(time.sleep, 5)"),
    _endless(
        "sleep in a finalizer",
        "import time\nclass A:\n    def __del__(self): time.sleep(5)\na = A()",
    ),
    _endless(
        "sleep after an error", "import sys, time\nsys.excepthook = lambda *_: time.sleep(5)\n1 / 0"
    ),
    _endless("backtrack", "import re\nre.match('(a*)*b', 'a' * 28)"),
    _endless("a large power", "10 ** 10 ** 8"),
    _endless("loop in C", "sum(iter(int, 1))"),
    _endless(
        "loop in the garbage collector",
        "import gc, time\ngc.callbacks.append(lambda *_: time.sleep(5)); gc.collect()",
    ),
    _endless(
        "loop in an allocation hook",
        "import sys, time\nsys.addaudithook(lambda *_: time.sleep(5)); open('/dev/null')",
    ),
    LoneAttack(
        "overflow the C stack",
        "import ctypes\nctypes.string_at(0)",
        r"\(ended with 139\)",
        r"\(ended with -11\)",
    ),
    LoneAttack(
        "recurse",
        "import sys\n"
        "sys.setrecursionlimit(10**6)\n"
        "print('deep', flush=True)\n"
        "def f(x): return [f(x)]\n"
        "f(0)",
        r"\(ended with \d+\)|\(stopped",
        "deep",
        is_endless=True,
    ),
    LoneAttack("abort", "import os\nos.abort()", r"\(ended with 13[49]\)", r"\(ended with -6\)"),
    LoneAttack(
        "allocate until the end",
        "x = []\nwhile len(x) < 24: x.append(bytearray(1 << 24))\nprint(12321)",
        "MemoryError",
        "12321",
    ),
    LoneAttack(
        "flood the output",
        "while True: print('x' * 9999)",
        r"\(stopped after 1048576 bytes of output\)",
        r"\(more than 2097152 bytes\)",
    ),
    LoneAttack(
        "flood without a line end",
        "import os\nwhile True: os.write(1, b'x' * 65536)",
        r"\(stopped after 1048576 bytes",
        r"\(more than 2097152",
    ),
    LoneAttack(
        "flood the error output",
        "import os\nwhile True: os.write(2, b'x' * 65536)",
        r"\(stopped after 1048576 bytes",
        r"\(more than 2097152",
    ),
    LoneAttack(
        "print a deep structure",
        "x = []\n"
        "for _ in range(10**5): x = [x]\n"
        "try: repr(x)\n"
        "except RecursionError: print('recursion')",
        "recursion",
        "recursion",
    ),
    LoneAttack(
        "ask for a long integer",
        "try: print(len(str(10 ** 5000)))\nexcept ValueError: print('digits')",
        "digits",
        "digits",
    ),
)
