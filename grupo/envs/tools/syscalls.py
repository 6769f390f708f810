"""The system calls that a program in a sandbox may make.

The basis is the allow list of Docker's default profile (moby/profiles, tag seccomp/v0.2.3, file
seccomp/default.json, May 2026): the calls that it allows a container without capabilities, on every
architecture. The list is divided into three parts. `DENIED` has the calls that one Python program
does not need, which return EPERM. `CONDITIONS` has the calls that depend on their arguments, and
those that succeed without effect. `ALLOWED` has all others. `syscall_rules` puts them together, for
one process or for several. A call that is in none of the three
returns ENOSYS, such as a call that a future kernel adds.
"""

import errno
from typing import NamedTuple


class Condition(NamedTuple):
    """An action for a system call if argument & mask == value, for each of the arguments.

    Args:
        syscall: Name of the call.
        arguments: (index of the argument, mask, value), all of which must hold.
        error: The errno that the call returns instead of being made; 0 is success without effect.
    """

    syscall: str
    arguments: tuple[tuple[int, int, int], ...]
    error: int | None = None


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOWED = _names("""
    access cachestat chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3
    faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown
    fchown32 fchownat fdatasync fgetxattr flistxattr fremovexattr fsetxattr
    fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimesat getcwd getdents
    getdents64 getxattr getxattrat lchown lchown32 lgetxattr link linkat listxattr listxattrat
    llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64 mkdir mkdirat newfstatat open
    openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink
    readlinkat readv removexattr removexattrat rename renameat renameat2 rmdir sendfile sendfile64
    setxattr setxattrat stat stat64 statfs statfs64 statx symlink symlinkat sync_file_range truncate
    truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes write writev

    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait
    epoll_wait_old eventfd eventfd2 _newselect pipe pipe2 poll ppoll ppoll_time64 pselect6
    pselect6_time64 select signalfd signalfd4 timerfd_create timerfd_gettime timerfd_gettime64
    timerfd_settime timerfd_settime64

    brk get_thread_area madvise map_shadow_stack membarrier mincore mlock mlock2 mlockall mmap mmap2
    mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect
    remap_file_pages set_thread_area arch_prctl

    adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime
    clock_gettime64 clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep
    setitimer time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64
    timer_settime timer_settime64 times

    futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake get_robust_list rseq
    set_robust_list set_tid_address

    kill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
    rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack
    sigprocmask sigreturn tgkill tkill

    capget execve execveat exit exit_group getcpu getegid getegid32 geteuid geteuid32 getgid
    getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getpriority getrandom getresgid
    getresgid32 getresuid getresuid32 getrlimit getrusage getsid gettid getuid getuid32 ioprio_get
    prlimit64 riscv_hwprobe sched_getaffinity sched_getattr sched_getparam sched_get_priority_max
    sched_get_priority_min sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64
    sched_yield setpgid setpriority setrlimit setsid sysinfo ugetrlimit uname uretprobe wait4 waitid
    waitpid

    getpeername getsockname getsockopt recv recvfrom recvmsg recvmmsg recvmmsg_time64 send sendto
    shutdown
""")

NEW_PROCESSES = _names("fork vfork")
DENIED = {
    "new processes": NEW_PROCESSES,
    "other processes": _names("""
        pidfd_open pidfd_send_signal process_mrelease process_vm_readv process_vm_writev
        ptrace kcmp pidfd_getfd process_madvise
    """),
    "network, and file descriptors sent through sockets": _names("""
        socket socketcall bind connect listen accept accept4 setsockopt sendmsg sendmmsg
    """),
    "memory outside of the limits of the process": _names("""
        ipc shmget shmat shmctl shmdt msgget msgctl msgsnd msgrcv semget semctl semop semtimedop
        semtimedop_time64 mq_open mq_unlink mq_notify mq_getsetattr mq_timedsend mq_timedsend_time64
        mq_timedreceive mq_timedreceive_time64 memfd_create memfd_secret io_setup io_submit
        io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 inotify_init
        inotify_init1 inotify_add_watch inotify_rm_watch fanotify_mark splice tee vmsplice
    """),
    "identity": _names("""
        setuid setuid32 setgid setgid32 setreuid setreuid32 setregid setregid32 setresuid
        setresuid32 setresgid setresgid32 setfsuid setfsuid32 setfsgid setfsgid32 setgroups
        setgroups32 capset
    """),
    "scheduling": _names("""
        sched_setaffinity sched_setattr sched_setparam sched_setscheduler ioprio_set
    """),
    "the machine's disks and mounts": _names("""
        sync syncfs mknod mknodat name_to_handle_at statmount listmount
    """),
    "old interfaces of the processor": _names("""
        modify_ldt personality
    """),
    "further filters": _names("""
        seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
    """),
}

CLONE_THREAD = 0x00010000
CLONE_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
AF_UNIX, SOCK_STREAM = 1, 1
WORD = 0xFFFFFFFF  # of an argument that the kernel reads as 32 bits
SOCKET_TYPE = 0xFFFFFFFF & ~0o2004000  # SOCK_NONBLOCK and SOCK_CLOEXEC are allowed
# isatty, the size of a terminal, FIONCLEX, FIOCLEX, FIONBIO, FIONREAD; not TIOCSTI or TIOCLINUX
IOCTLS = (0x5401, 0x5413, 0x5450, 0x5451, 0x5421, 0x541B)
PRCTLS = (15, 16, 0x53564D41)  # name of a thread: PR_SET_NAME, PR_GET_NAME; PR_SET_VMA
FCNTL_NAMES = ("fcntl", "fcntl64")
# copies of a descriptor, its flags, what locks a file has, the size of a pipe; not F_SETOWN,
# F_SETLEASE or F_NOTIFY, which tells when a program of the host opens a file
FCNTLS = (0, 1, 2, 3, 4, 5, 12, 36, 1030, 1032)
# F_SETLK and F_SETLKW, also with 64 bits and of open files. A lock of a file in /usr would stop
# programs of the host and be seen in other sandboxes; one process needs no lock
LOCKING_FCNTLS = (6, 7, 13, 14, 37, 38)

ONE_PROCESS = (
    Condition("clone", ((0, CLONE_THREAD | CLONE_NEW_NAMESPACES, CLONE_THREAD),)),  # threads
    Condition("clone", ((0, CLONE_THREAD, 0),), error=errno.EPERM),  # processes
)
SEVERAL_PROCESSES = (Condition("clone", ((0, CLONE_NEW_NAMESPACES, 0),)),)
CONDITIONS = (
    Condition(
        "socketpair", ((0, WORD, AF_UNIX), (1, SOCKET_TYPE, SOCK_STREAM))
    ),  # asyncio needs it
    *(Condition("ioctl", ((1, WORD, request),)) for request in IOCTLS),
    *(Condition("prctl", ((0, WORD, option),)) for option in PRCTLS),
    Condition("flock", (), error=0),
    *(Condition(n, ((1, WORD, command),)) for n in FCNTL_NAMES for command in FCNTLS),
    *(
        Condition(n, ((1, WORD, command),), error=0)
        for n in FCNTL_NAMES
        for command in LOCKING_FCNTLS
    ),
)


class SyscallRules(NamedTuple):
    """Actions of a filter for system calls; a call that is nowhere returns ENOSYS.

    Args:
        allowed: Names of the calls that are made.
        denied: Names of the calls that return EPERM.
        conditions: Calls that depend on their arguments, and calls without effect.
    """

    allowed: frozenset[str]
    denied: frozenset[str]
    conditions: tuple[Condition, ...]


def syscall_rules(*, allows_processes: bool) -> SyscallRules:
    """The rules for one process with threads, or for a program that may start processes."""
    denied = frozenset[str]().union(*DENIED.values())
    if not allows_processes:
        return SyscallRules(ALLOWED, denied, (*ONE_PROCESS, *CONDITIONS))
    return SyscallRules(
        ALLOWED | NEW_PROCESSES, denied - NEW_PROCESSES, (*SEVERAL_PROCESSES, *CONDITIONS)
    )
