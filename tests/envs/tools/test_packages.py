"""Packages in the sandbox: which are found, what programs import, and what stays forbidden."""

import re
from dataclasses import replace

import pytest

from grupo.envs.tools import Container, Sandbox
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


def test_a_distribution_without_modules_is_refused(tmp_path, monkeypatch):
    metadata = tmp_path / "elsewhere-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: elsewhere\nVersion: 1.0\n")
    (metadata / "RECORD").write_text(
        "elsewhere.pth,,\n../bin/tool,,\nelsewhere-1.0.dist-info/METADATA,,\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        ConfigError, match="'elsewhere' has no modules, or is installed in editable"
    ):
        package_paths(("elsewhere",))


def test_a_container_has_no_packages():
    sandbox = replace(SANDBOX, backend=Container())
    with pytest.raises(ConfigError, match=r"packages: a container has no packages of the host"):
        sandbox.run("print(1)")


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
