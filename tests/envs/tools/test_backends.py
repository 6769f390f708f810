"""The commands that the backends make, and the choice between them."""

import json
import os
import re
import shlex
import sys

import pytest

from grupo.core.component import component
from grupo.envs.tools.backends import (
    Bubblewrap,
    Container,
    FirstAvailable,
    Gvisor,
    ProgramLimits,
    container,
    namespaces,
)
from grupo.envs.tools.backends.gvisor import oci_config
from grupo.envs.tools.backends.packages import package_paths
from grupo.envs.tools.backends.program import python_command
from grupo.util.errors import ConfigError

LIMITS = ProgramLimits(time_limit=2.5, memory_mib=100, disk_mib=3)
PACKAGES = package_paths(("numpy",))


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Every tool is installed, in a folder of its own."""
    for name in ("bwrap", "runsc", "docker", "podman", "unshare", "setpriv"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def arguments(backend, packages=()):
    with backend.launch(LIMITS, packages) as launch:
        return list(launch.command), launch


def test_root_starts_the_sandbox_as_a_user_without_an_account(tools, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = namespaces.isolated_command(("x",), LIMITS)
    assert "--user" not in command
    assert command[:4] == (f"{tools}/setpriv", "--pdeathsig", "KILL", "/bin/sh")
    assert command[6:8] == (str(os.getpid()), f"{tools}/unshare")
    drop = command[command.index(f"{tools}/setpriv", 1) :]
    uid = int(drop[drop.index("--reuid") + 1])
    assert uid in namespaces.SANDBOX_UIDS
    assert drop[1:6] == ("--reuid", str(uid), "--regid", str(uid), "--clear-groups")
    assert drop[-3:] == ("--pdeathsig", "KILL", "x")
    others = {namespaces.isolated_command(("x",), LIMITS)[-9] for _ in range(5)}
    assert len({uid, *others}) > 1


def test_another_user_starts_the_sandbox_in_a_user_namespace(tools, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command = namespaces.isolated_command(("x",), LIMITS)
    assert command[7:13] == (
        *(f"{tools}/unshare", "--mount", "--propagation", "private"),
        *("--user", "--map-root-user"),
    )
    assert command.count(f"{tools}/setpriv") == 1


def test_the_scratch_folder_does_not_hide_python(monkeypatch):
    assert namespaces.scratch_folder() == "/mnt"
    monkeypatch.setattr(sys, "base_prefix", "/mnt/python")
    assert namespaces.scratch_folder() == "/media"


def test_bubblewrap_shares_no_namespace_and_has_no_proc(tools):
    command, launch = arguments(Bubblewrap())
    bwrap = command[command.index(f"{tools}/bwrap") :]
    for name in ("user", "net", "pid", "ipc", "uts", "cgroup-try"):
        assert f"--unshare-{name}" in bwrap
    assert "--proc" not in bwrap
    assert "--clearenv" in bwrap
    assert launch.environment == {}
    assert bwrap[bwrap.index("--seccomp") + 1] == str(launch.pass_fds[0])


def test_gvisor_runs_a_bundle_without_network(tools):
    command, launch = arguments(Gvisor(platform="systrap"))
    runsc = command[command.index(f"{tools}/runsc") :]
    assert runsc[1:-3] == [
        *("--network=none", "--ignore-cgroups", "--rootless", "--oci-seccomp", "--overlay=false"),
        *("--platform=systrap", "--root=/mnt/state"),
    ]
    assert runsc[-3:-1] == ["run", "--bundle=/mnt/bundle"]
    assert re.fullmatch("grupo-[0-9a-f]{32}", runsc[-1])
    assert {"--pid", "--fork", "--kill-child", "--net"} <= set(command)
    assert launch.environment == {}


def test_the_bundle_of_gvisor_has_an_empty_environment_and_read_only_folders():
    config = oci_config(LIMITS)
    assert json.loads(json.dumps(config))["process"]["env"] == []
    assert config["process"]["user"] == {"uid": 65534, "gid": 65534}
    assert config["process"]["noNewPrivileges"] is True
    assert config["root"]["readonly"] is True
    *folders, temporary = config["mounts"]
    assert all("ro" in mount["options"] for mount in folders)
    assert "size=3145728" in temporary["options"]


def test_bubblewrap_and_gvisor_mount_packages_read_only(tools):
    command, _ = arguments(Bubblewrap(), PACKAGES)
    place = command.index("/packages")
    assert command[place - 2 : place] == ["--ro-bind", "/mnt/packages"]
    mounts = {mount["destination"]: mount for mount in oci_config(LIMITS, PACKAGES)["mounts"]}
    assert mounts["/packages"]["source"] == "/mnt/packages"
    assert "ro" in mounts["/packages"]["options"]
    for backend in (Bubblewrap(), Gvisor()):
        command, _ = arguments(backend, PACKAGES)
        script = next(word for word in command if word.startswith("set -e"))
        source = shlex.quote(str(PACKAGES[0]))
        assert f"mount --rbind {source} packages/{PACKAGES[0].name}" in script
        assert "packages" not in " ".join(arguments(backend)[0])


def test_a_container_has_no_network_no_capabilities_and_is_removed(tools, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    commands = []
    monkeypatch.setattr(container.subprocess, "run", lambda command, **_: commands.append(command))
    command, launch = arguments(Container("image:1", engine="docker"))
    assert command[:2] == [f"{tools}/docker", "run"]
    assert {
        *("--rm", "--pull=never", "--network=none", "--read-only", "--cap-drop=ALL"),
        *("--security-opt=no-new-privileges", "--user=65534:65534", "--env=HTTPS_PROXY="),
        "--stop-timeout=0",  # a program that does not end is killed at once, and not after 10 s
        *("--memory=103m", "--memory-swap=103m", "--pids-limit=64"),
        "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size=3145728",
    } <= set(command)
    name = next(word for word in command if word.startswith("--name=")).removeprefix("--name=")
    assert commands == [(f"{tools}/docker", "rm", "--force", name)]
    assert "SECRET" not in launch.environment
    assert launch.environment["PATH"] == str(tools)


def test_the_limits_are_those_of_the_program():
    launch_code = python_command("python3", LIMITS, RLIMIT_NPROC=9)[-1]
    for limit in (("RLIMIT_AS", 100 << 20), ("RLIMIT_CPU", 3), ("RLIMIT_NPROC", 9)):
        assert str(limit) in launch_code


@component
class Absent:
    """A backend that no machine has."""

    name: str

    def check_machine(self):
        raise ConfigError(f"sandbox: no {self.name}.")


@component
class Present:
    """A backend that every machine has."""

    name: str

    def check_machine(self):
        """It works."""


def test_the_first_backend_that_works_is_chosen():
    assert FirstAvailable((Absent("a"), Present("b"), Present("c"))).choice() == Present("b")
    assert FirstAvailable((Present("c"), Present("b"))).choice() == Present("c")
    with pytest.raises(ConfigError, match=r"^sandbox: no backend works .*\. no a\. no b\.$"):
        FirstAvailable((Absent("a"), Absent("b"))).check_machine()
