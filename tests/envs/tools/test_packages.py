"""Packages in the sandbox: which are found, what programs import, and what stays forbidden."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from grupo.envs.tools import Container, Sandbox
from grupo.envs.tools import sandbox as sandbox_module
from grupo.envs.tools.backends.packages import package_paths
from grupo.util.errors import ConfigError

PLAIN = Sandbox(time_limit=20.0)
SANDBOX = replace(PLAIN, packages=("numpy", "scipy"))


@pytest.fixture(scope="module")
def backend():
    """Skips the test on machines without a backend that has packages."""
    try:
        SANDBOX.check()
    except ConfigError as error:
        pytest.skip(str(error))


def test_a_distribution_has_its_modules_its_libraries_and_its_metadata():
    names = [path.name for path in package_paths(("numpy", "numpy"))]
    assert {"numpy", "numpy.libs"} <= set(names)
    assert sum(name.endswith(".dist-info") for name in names) == 1


def test_a_distribution_that_is_not_installed_is_refused():
    with pytest.raises(ConfigError, match=r"packages: 'scipi' is not installed\. Allowed: names"):
        package_paths(("scipi",))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution: the files that it records, of which only some may exist."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def _install(name, *recorded, existing=(), origin=""):
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
        lines = (*recorded, f"{name}-1.0.dist-info/METADATA")
        (metadata / "RECORD").write_text("".join(f"{line},,\n" for line in lines))
        if origin:
            (metadata / "direct_url.json").write_text(origin)
        for file in existing:
            (tmp_path / file).touch()

    return _install


def test_a_distribution_without_modules_is_refused(install):
    install("elsewhere", "elsewhere.pth", "../bin/tool", existing=["elsewhere.pth"])
    with pytest.raises(ConfigError, match="'elsewhere' has no modules"):
        package_paths(("elsewhere",))


def test_a_distribution_in_editable_mode_is_refused(install):
    finder = "__editable___mine_1_0_finder.py"
    origin = '{"dir_info": {"editable": true}, "url": "file:///home/me/mine"}'
    install("mine", finder, existing=[finder], origin=origin)
    with pytest.raises(ConfigError, match="'mine' is installed in editable mode, so its modules"):
        package_paths(("mine",))


def test_recorded_files_that_are_missing_or_lie_elsewhere_are_left_out(install):
    install("torn", "torn.py", "gone/x.py", "/etc/passwd", "../up.py", "", existing=["torn.py"])
    names = [path.name for path in package_paths(("torn",))]
    assert names == ["torn-1.0.dist-info", "torn.py"]


@pytest.mark.parametrize("origin", ["{", "[]", '{"dir_info": 3}'])
def test_damaged_metadata_is_one_error(install, origin):
    install("damaged", "damaged.py", existing=["damaged.py"], origin=origin)
    with pytest.raises(ConfigError, match="'damaged' has metadata that cannot be read"):
        package_paths(("damaged",))


def test_a_long_name_is_cut_in_the_message():
    with pytest.raises(ConfigError) as raised:
        package_paths(("x" * 100_000,))
    assert len(str(raised.value)) < 300


def test_a_container_has_no_packages():
    sandbox = replace(SANDBOX, backend=Container())
    with pytest.raises(ConfigError, match=r"packages: a container has no packages of the host"):
        sandbox.run("print(1)")


@pytest.mark.usefixtures("backend")
def test_packages_that_cannot_be_mounted_are_refused_before_any_program(monkeypatch):
    gone = (Path("/nowhere/gone.py"),)
    monkeypatch.setattr(sandbox_module, "package_paths", lambda names: gone)
    with pytest.raises(ConfigError, match=r"one word fails: mount: .*gone\.py.* and packages that"):
        SANDBOX.check()


@pytest.mark.usefixtures("backend")
def test_programs_import_the_packages_that_are_named_and_no_others():
    program = "import numpy, os; print(numpy.arange(3).sum(), os.environ.get('OMP_NUM_THREADS'))"
    assert SANDBOX.run(program) == "3 1"
    assert SANDBOX.run("import annotated_types").endswith(
        "No module named 'annotated_types'\n(ended with 1)"
    )
    assert PLAIN.run("import numpy").endswith("No module named 'numpy'\n(ended with 1)")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        ("import socket; socket.socket()", "Operation not permitted"),
        ("import os; os.fork()", "Operation not permitted"),
        ("import subprocess; subprocess.run(['/bin/true'])", "Operation not permitted"),
        ("open('/etc/passwd')", "No such file or directory"),
        ("open(numpy.__file__, 'a')", "Read-only file system|Permission denied"),
        ("open('/packages/new.py', 'w')", "Read-only file system|Permission denied"),
        ("numpy.ones(1 << 30)", "Unable to allocate"),
    ],
)
def test_a_program_with_packages_is_confined_as_any_other(attack, reason):
    output = SANDBOX.run(f"import numpy\nprint('imported', flush=True)\n{attack}")
    assert re.fullmatch(rf"imported\n.*({reason}).*\(ended with 1\)", output, re.DOTALL)
