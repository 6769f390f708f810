"""Cgroups of sandboxes, on this machine and in folders that look like those of others."""

import subprocess
import sys

import pytest

from grupo.envs.tools.backends import cgroups
from grupo.envs.tools.backends.cgroups import cgroup_parents, limited_cgroup

ALLOCATE = "x = bytearray(100 << 20); x[:] = b'1' * len(x); print('done')"
START_THREADS = (
    "import threading, time\n"
    "for _ in range(20): threading.Thread(target=time.sleep, args=(0.2,)).start()\n"
    "print('done')"
)


@pytest.fixture
def permission():
    """Skips the test where this user cannot make cgroups."""
    if not cgroup_parents():
        pytest.skip("this user cannot make cgroups here")


def run_in(cgroup_files, code):
    """The output of a program in a cgroup."""
    script = 'for file in "$@"; do echo 0 > "$file"; done; exec "$python" -c "$code"'
    return subprocess.run(
        ["/bin/sh", "-c", script, "sh", *map(str, cgroup_files)],
        env={"python": sys.executable, "code": code},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


@pytest.mark.usefixtures("permission")
def test_a_cgroup_limits_memory():
    with limited_cgroup(memory_mib=50, max_processes=50) as files:
        assert run_in(files, ALLOCATE) == ""
    with limited_cgroup(memory_mib=400, max_processes=50) as files:
        assert run_in(files, ALLOCATE) == "done"


@pytest.mark.usefixtures("permission")
def test_a_cgroup_limits_threads():
    with limited_cgroup(memory_mib=400, max_processes=10) as files:
        assert run_in(files, START_THREADS) == ""
    with limited_cgroup(memory_mib=400, max_processes=50) as files:
        assert run_in(files, START_THREADS) == "done"


@pytest.mark.usefixtures("permission")
def test_a_cgroup_is_removed_after_its_last_process():
    with limited_cgroup(memory_mib=50, max_processes=50) as files:
        assert all(file.is_file() for file in files)
        assert len(files) >= 1
    assert not any(file.parent.exists() for file in files)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Writes the files of another machine; returns the folder of its cgroups."""

    def write(own: str, files: dict[str, str]):
        monkeypatch.setattr(cgroups, "CGROUP_ROOT", tmp_path / "cgroup")
        monkeypatch.setattr(cgroups, "OWN_CGROUPS", tmp_path / "own")
        monkeypatch.setattr(cgroups, "_can_join_children", lambda parent: parent.is_dir())
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "cgroup"

    return write


UNIFIED = "0::/user/run\n"


def unified_files(enabled):
    return {"cgroup.controllers": "", "user/cgroup.subtree_control": enabled}


def test_version_2_uses_the_parent_of_the_own_cgroup(machine):
    root = machine(UNIFIED, unified_files("memory pids cpu"))
    assert cgroup_parents() == {root / "user": ("memory", "pids")}
    with limited_cgroup(memory_mib=2, max_processes=7) as (file,):
        settings = {f.name: f.read_text() for f in file.parent.iterdir()}
        assert settings == {"memory.max": "2097152", "pids.max": "7"}
        for setting in file.parent.iterdir():
            setting.unlink()  # the kernel removes them with the folder


@pytest.mark.parametrize("enabled", ["", "memory", "cpu io"])
def test_version_2_without_the_controllers_has_none(machine, enabled):
    machine(UNIFIED, unified_files(enabled))
    assert cgroup_parents() == {}
    with limited_cgroup(memory_mib=2, max_processes=7) as files:
        assert files == ()


def test_version_1_uses_the_own_cgroup_of_each_controller(machine):
    own = "4:memory:/a\n3:cpu,pids:/b\n0::/\n"
    root = machine(own, {"memory/a/tasks": "", "pids/b/tasks": ""})
    assert cgroup_parents() == {root / "memory/a": ("memory",), root / "pids/b": ("pids",)}


def test_version_1_without_a_controller_has_none(machine):
    machine("4:memory:/a\n0::/\n", {"memory/a/tasks": ""})
    assert cgroup_parents() == {}


def test_no_process_joins_a_cgroup_that_cannot_be_made(tmp_path):
    assert not cgroups._can_join_children(tmp_path / "missing")
