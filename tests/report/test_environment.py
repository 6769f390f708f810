"""`grupo doctor --environment` describes an installation."""

from importlib import metadata

from grupo.report.environment import (
    Environment,
    InstalledExtra,
    environment_lines,
    examine_environment,
)
from grupo.util.requirements import EXTRAS, InstalledPackage

TORCH = InstalledPackage("torch>=2.6", "2.5.1", is_allowed=False)
GAMES = InstalledExtra("games", "games of boards", ("chess>=1",))
ENVIRONMENT = Environment(
    version="0.1.0",
    folder="/packages/grupo",
    python="3.13.0, Linux",
    packages=(TORCH,),
    devices=("cpu: a processor, 2 cores, 8 GiB",),
    kernels="compiled with 'cc': cc 12",
    extras=(GAMES,),
)


def test_lines_name_what_is_wrong_and_what_an_extra_would_bring():
    assert list(environment_lines(ENVIRONMENT)) == [
        "grupo      0.1.0, /packages/grupo",
        "python     3.13.0, Linux",
        "package    torch>=2.6: 2.5.1",
        "device     cpu: a processor, 2 cores, 8 GiB",
        "kernels    compiled with 'cc': cc 12",
        'extra      games: games of boards (pip install "grupo[games]": chess>=1)',
        "problem    torch>=2.6 is required: 2.5.1",
    ]


def test_this_environment_has_its_versions_and_every_extra():
    environment = examine_environment()
    assert environment.version == metadata.version("grupo")
    torch = next(p for p in environment.packages if p.requirement.startswith("torch>="))
    assert torch.version == metadata.version("torch")
    assert "cores" in environment.devices[0]
    assert "compiled" in environment.kernels
    assert [extra.name for extra in environment.extras] == list(EXTRAS)


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CC", "no-compiler-of-that-name -O2")
    kernels = examine_environment().kernels
    assert kernels.endswith("'no-compiler-of-that-name', which is not installed (CC, otherwise cc)")
