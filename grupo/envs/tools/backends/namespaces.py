"""Private mounts and an unprivileged user for a sandbox, before the sandbox itself begins.

No process of a sandbox has uid 0 outside of it. Where this process is root, its mounts are made in
a mount namespace of their own, and everything after that runs as a user that no account has.
Elsewhere the mounts are made in a user namespace, as this user.
"""

import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from grupo.envs.tools.backends.protocol import MAX_INODES, MIB, ProgramLimits
from grupo.util.errors import ConfigError

# systemd's range for users of services that have no account; each run has another one, because
# the kernel counts threads, pipes and pending signals by user
SANDBOX_UIDS = range(61184, 65520)
_run_numbers = itertools.count(os.getpid())
# the scratch folder hides a folder of the host in the sandbox's mount namespace only
SCRATCH_FOLDERS = ("/mnt", "/media", "/srv")
# every process of the namespace is killed with unshare, also one that has not asked for that yet;
# bubblewrap looks for its child in /proc, by the number that the child has in the namespace
PID_NAMESPACE = ("--pid", "--fork", "--kill-child", "--mount-proc")
KILL_WITH_PARENT = ("--pdeathsig", "KILL")  # of setpriv; the kernel forgets it with another user
# a script of sh: the parent may have ended before setpriv asked for the signal
IF_PARENT_RUNS = '[ "$PPID" = "$0" ] && exec "$@"'
SETUP_SCRIPT = """\
set -e
for file in {cgroup_files}; do echo 0 > "$file"; done
mount -t tmpfs -o size=4m,nr_inodes=256,mode=755 scratch {scratch}
cd {scratch}
mkdir tmp python
mount -t tmpfs -o size={disk_bytes},nr_inodes={inodes},mode=1777,nosuid,nodev tmp {scratch}/tmp
mount --rbind {prefix} {scratch}/python
{more_setup}
cd /
exec "$@"
"""


def scratch_folder() -> str:
    """The scratch folder, with the temporary folder `tmp` and the Python installation `python`."""
    prefix = Path(sys.base_prefix)
    return next(name for name in SCRATCH_FOLDERS if not prefix.is_relative_to(name))


def isolated_command(
    command: Sequence[str],
    limits: ProgramLimits,
    *,
    cgroup_files: Sequence[Path] = (),
    more_setup: str = "",
    namespaces: Sequence[str] = (),
) -> tuple[str, ...]:
    """A command that runs another one with private mounts, as an unprivileged user.

    This process starts the command. The command is killed when the thread that started it ends, and
    therefore also when this process is killed. With `PID_NAMESPACE`, all processes that the command
    has started are killed with it.

    Args:
        command: The command of the sandbox.
        limits: Limits of the program; its temporary folder has the size `disk_mib`.
        cgroup_files: `cgroup.procs` files of the cgroups to join.
        more_setup: Lines of a shell script that run in the scratch folder.
        namespaces: Further options for `unshare`.

    Raises:
        ConfigError: A tool of util-linux is missing.
    """
    script = SETUP_SCRIPT.format(
        cgroup_files=shlex.join(map(str, cgroup_files)),
        scratch=scratch_folder(),
        disk_bytes=limits.disk_mib * MIB,
        inodes=MAX_INODES,
        prefix=shlex.quote(sys.base_prefix),
        more_setup=more_setup,
    )
    is_root = os.geteuid() == 0
    user_namespace = () if is_root else ("--user", "--map-root-user")
    unshare = (find_tool("unshare"), "--mount", "--propagation", "private", *user_namespace)
    shell = ("/bin/sh", "-c", script, "sh")
    drop_root = _drop_root() if is_root else ()
    return (
        find_tool("setpriv"),
        *KILL_WITH_PARENT,
        *("/bin/sh", "-c", IF_PARENT_RUNS, str(os.getpid())),
        *unshare,
        *namespaces,
        *shell,
        *drop_root,
        *command,
    )


def package_setup(packages: Sequence[Path]) -> str:
    """Lines of a shell script that mount packages in the folder `packages` of the scratch folder.

    Args:
        packages: Files and folders of the host.
    """
    lines = ["mkdir packages"] if packages else []
    for path in packages:
        target = shlex.quote(f"packages/{path.name}")
        create = "mkdir" if path.is_dir() else "touch"
        lines += [f"{create} {target}", f"mount --rbind {shlex.quote(str(path))} {target}"]
    return "\n".join(lines)


def find_tool(name: str, package: str = "util-linux") -> str:
    """The absolute path of a program; raises `ConfigError` if it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise ConfigError(
            f"sandbox: {name} is not installed. Install {package}, or remove the tool."
        )
    return os.path.abspath(path)


def _drop_root() -> tuple[str, ...]:
    uid = str(SANDBOX_UIDS[next(_run_numbers) % len(SANDBOX_UIDS)])
    return (
        *(find_tool("setpriv"), "--reuid", uid, "--regid", uid, "--clear-groups"),
        *("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
        *KILL_WITH_PARENT,
    )
