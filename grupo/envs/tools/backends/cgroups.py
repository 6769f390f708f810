"""Cgroups that limit the memory and the processes of a whole sandbox, where they can be had.

Root can usually make one. Another user can where systemd delegates a part of the tree to it, as in
a service or scope of `systemd --user`. In most containers no user can.
"""

import os
import shlex
import subprocess
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

from grupo.envs.tools.backends.protocol import MIB
from grupo.util.parent_death import name_prefix, run_after_end

CGROUP_ROOT = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
CONTROLLERS = ("memory", "pids")
MEMORY_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}  # by version of the interface
REMOVE_TIMEOUT = 2.0  # seconds until the last process of a killed sandbox has ended
# a script of sh: removes the cgroups whose names start with the first argument from the folders
# that follow, for 10 seconds; a cgroup can be removed when its last process has ended. It kills
# them: one of bubblewrap that is being started does not end with its parent
REMOVE_ALL = """\
prefix=$1
shift
for attempt in $(seq 100); do
    remaining=
    for parent; do
        for folder in "$parent/$prefix"*; do
            [ -d "$folder" ] || continue
            for process in $(cat "$folder/cgroup.procs"); do kill -KILL "$process"; done
            rmdir "$folder" || remaining=1
        done
    done
    [ "$remaining" ] || exit 0
    sleep 0.1
done
"""


@contextmanager
def limited_cgroup(memory_mib: int, max_processes: int) -> Generator[tuple[Path, ...]]:
    """The `cgroup.procs` files of a new cgroup: a process that writes 0 to each of them joins it.

    Without the permission to make a cgroup there are no files, and nothing is limited. If this
    process is killed, the cgroup is removed by another one.

    Args:
        memory_mib: Memory of all processes together, in MiB, with that of the kernel for them.
        max_processes: Processes and threads.
    """
    name = f"{name_prefix()}{uuid.uuid4().hex}"
    limits = {"memory": memory_mib * MIB, "pids": max_processes}
    parents = cgroup_parents()
    _remove_after_end(parents)
    with ExitStack() as stack:
        folders = [
            stack.enter_context(_cgroup_folder(parent / name, controllers, limits))
            for parent, controllers in parents.items()
        ]
        yield tuple(folder / "cgroup.procs" for folder in folders)


def cgroup_parents() -> Mapping[Path, tuple[str, ...]]:
    """The folders in which this user may make cgroups, with the controllers of each.

    Empty unless memory and processes can both be limited.
    """
    lines = [line.split(":", 2) for line in OWN_CGROUPS.read_text().splitlines()]
    paths = {name: path for _, names, path in lines for name in names.split(",")}
    if (CGROUP_ROOT / "cgroup.controllers").is_file():
        parents = _unified_parents(paths.get("", "/"))
    elif set(CONTROLLERS) <= set(paths):
        parents = {_folder(name, paths[name]): (name,) for name in CONTROLLERS}
    else:
        parents = {}
    if not all(os.access(parent, os.W_OK) for parent in parents):
        return {}
    _remove_after_end(parents)  # before a cgroup is made, in case this process is killed then
    return parents if all(map(_can_join_children, parents)) else {}


def _remove_after_end(parents: Mapping[Path, tuple[str, ...]]) -> None:
    """Let another process remove the cgroups that this one leaves behind."""
    if parents:
        run_after_end("/bin/sh", "-c", REMOVE_ALL, "sh", name_prefix(), *map(str, parents))


@cache
def _can_join_children(parent: Path) -> bool:
    """True if a process of this user can be moved to a new cgroup in a folder."""
    folder = parent / f"{name_prefix()}{uuid.uuid4().hex}"
    try:
        folder.mkdir()
    except OSError:
        return False
    join = ["/bin/sh", "-c", f"echo 0 > {shlex.quote(str(folder / 'cgroup.procs'))}"]
    has_joined = subprocess.run(join, env={}, capture_output=True, check=False).returncode == 0
    _remove(folder)
    return has_joined


def _unified_parents(own_path: str) -> Mapping[Path, tuple[str, ...]]:
    """The parent of this process's cgroup: a cgroup that holds processes cannot have children."""
    parent = CGROUP_ROOT / str(PurePosixPath(own_path).parent).lstrip("/")
    enabled = parent / "cgroup.subtree_control"
    if not enabled.is_file() or not set(CONTROLLERS) <= set(enabled.read_text().split()):
        return {}
    return {parent: CONTROLLERS}


def _folder(controller: str, own_path: str) -> Path:
    return CGROUP_ROOT / controller / own_path.lstrip("/")


@contextmanager
def _cgroup_folder(
    folder: Path, controllers: tuple[str, ...], limits: Mapping[str, int]
) -> Generator[Path]:
    folder.mkdir()
    try:
        version = 2 if len(controllers) > 1 else 1
        files = {"memory": MEMORY_FILES[version], "pids": "pids.max"}
        for controller in controllers:
            (folder / files[controller]).write_text(str(limits[controller]))
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a cgroup once its last process has ended; raises `OSError` if one does not end."""
    deadline = time.monotonic() + REMOVE_TIMEOUT
    while True:
        try:
            return folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)
