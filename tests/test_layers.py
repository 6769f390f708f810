"""The layers of the package: imports lead down only, and no files import each other in a circle."""

import re
import sys
from pathlib import Path

import pytest

import grupo
from tests.helpers.import_graph import (
    by_layer,
    cycles,
    external_imports,
    import_graph,
    upward_imports,
)

PACKAGE = Path(grupo.__file__).parent
# from the bottom to the top; members of one layer do not import each other
LAYERS = (
    ("util",),
    ("core",),
    ("storage", "tasks", "algo", "kernels"),
    ("distributed",),  # what evaluation and training share; methods, losses and rewards do not
    ("inference", "rollouts"),
    ("models", "method"),
    ("rewards",),  # a judge may be a model in this process
    ("envs",),
    ("ray_workers",),  # environments and servers in other processes
    ("methods", "recipe"),
    ("catalogue",),
    ("config",),
    ("training",),
    ("testing", "toy", "report"),
    ("compare",),
    ("evidence",),
    ("pipeline",),
    ("cli",),
    ("grupo", "__main__"),  # the lazy table of public names, and `python -m grupo`
)
PHASES = ("collect", "update", "resume")  # packages of training; each may import earlier ones
SHARED_BY_PHASES = {"grupo.training.stopping"}
# what the mathematics may import besides grupo: torch, its type annotations, the standard library
EVALUATE = "grupo.rollouts.evaluate"
MATHEMATICS = {"torch", "jaxtyping"} | sys.stdlib_module_names
EXTRAS = {
    "grupo.algo.optimizers.adam8bit": {"bitsandbytes"},
    "grupo.algo.optimizers.schedule_free": {"schedulefree"},
}


@pytest.fixture(scope="module")
def graph():
    return import_graph(PACKAGE)


def test_every_member_of_the_package_has_a_layer(graph):
    assert set(by_layer(graph)) == {name for layer in LAYERS for name in layer}


def test_imports_lead_to_lower_layers_only(graph):
    assert upward_imports(graph, LAYERS) == []


def test_no_files_import_each_other_in_a_circle(graph):
    assert cycles(graph) == []


def test_the_mathematics_imports_core_and_torch_only(graph):
    modules = [name for name in graph if name.startswith("grupo.algo")]
    external = external_imports(PACKAGE)
    assert len(modules) > 20
    for module in modules:
        assert {name.split(".")[1] for name in graph[module]} <= {"algo", "core", "util"}, module
        assert external[module] <= MATHEMATICS | EXTRAS.get(module, set()), module


def test_only_training_evaluation_and_commands_know_of_ranks(graph):
    importing = {name for name in graph if any("distributed" in other for other in graph[name])}
    allowed = (
        "grupo.training.",
        "grupo.pipeline.",
        "grupo.evidence.survey.",
        "grupo.cli.",
        "grupo.distributed",
    )
    allowed += ("grupo.testing.", EVALUATE)
    assert importing
    assert [name for name in sorted(importing) if not name.startswith(allowed)] == []


def test_the_phases_of_training_import_earlier_phases_only(graph):
    for i, phase in enumerate(PHASES):
        package = f"grupo.training.{phase}"
        allowed = tuple(f"grupo.training.{earlier}" for earlier in PHASES[: i + 1])
        modules = [name for name in graph if name.startswith(f"{package}.")]
        assert modules
        for module in modules:
            of_training = {x for x in graph[module] if x.startswith("grupo.training.")}
            of_training -= SHARED_BY_PHASES
            assert [x for x in sorted(of_training) if not x.startswith(allowed)] == [], module


def test_the_worker_of_vllm_can_be_copied_out_of_the_package(graph):
    """Its modules name each other by relative imports, and no other module of grupo."""
    folder = PACKAGE / "inference" / "vllm_worker"
    for path in folder.glob("*.py"):
        assert re.search(r"^\s*(from|import) grupo\b", path.read_text(), re.MULTILINE) is None
    name = "grupo.inference.vllm_worker"
    modules = [module for module in graph if module.startswith(name)]
    assert {f"{name}.extension", f"{name}.digest"} <= {*modules}
    assert graph[name] == {f"{name}.extension"}
    for module in modules:
        assert all(imported.startswith(name) for imported in graph[module]), module


def test_no_method_imports_another_method(graph):
    methods = {name for name in graph if name.startswith("grupo.methods.")}
    assert len(methods) > 200
    assert {name: graph[name] & methods for name in methods if graph[name] & methods} == {}


def test_at_most_six_modules_lie_in_the_root():
    assert len(list(PACKAGE.glob("*.py"))) <= 6


@pytest.fixture
def planted(tmp_path):
    """A package of three members, of which the lowest can be given any source."""

    def write(lowest: str) -> Path:
        package = tmp_path / "grupo"
        for member, source in {
            "core": lowest,
            "algo": "from grupo.core import batch\n",
            "training": "from grupo import algo\n",
        }.items():
            (package / member).mkdir(parents=True, exist_ok=True)
            (package / member / "__init__.py").write_text(source)
        (package / "__init__.py").write_text("")
        (package / "core" / "batch.py").write_text("")
        return package

    return write


PLANTED_LAYERS = (("core",), ("algo",), ("training",), ("grupo",))


def test_planted_layers_pass(planted):
    graph = import_graph(planted("import math\n"))
    assert upward_imports(graph, PLANTED_LAYERS) == []
    assert cycles(graph) == []


@pytest.mark.parametrize(
    "source",
    [
        "import grupo.training\n",
        "from grupo.training import anything\n",
        "def late():\n    from grupo import training\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import grupo.training\n",
    ],
    ids=["import", "from", "inside a function", "for types"],
)
def test_a_planted_upward_import_is_found(planted, source):
    assert upward_imports(import_graph(planted(source)), PLANTED_LAYERS) == ["core -> training"]


def test_a_planted_circle_is_found(planted):
    package = planted("")
    (package / "core" / "batch.py").write_text("from grupo.core import types\n")
    (package / "core" / "types.py").write_text("from grupo.core.batch import Batch\n")
    assert cycles(import_graph(package)) == [{"grupo.core.batch", "grupo.core.types"}]
