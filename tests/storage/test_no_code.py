"""The package loads data only: nothing in it executes the bytes of a file, but for the user's code.

`ALLOWED` lists the places that import modules by name.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.helpers.paths import ROOT

PACKAGE = ROOT / "grupo"
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {
    *("pickle", "_pickle", "cPickle", "pickle5", "marshal", "shelve", "dill", "cloudpickle"),
    *("joblib", "jsonpickle", "runpy", "code", "codeop", "yaml", "torch.package", "torch.jit"),
}
ATTRIBUTES = {
    *("exec_module", "import_module", "run_path", "run_module"),  # of modules
    *("read_pickle", "to_pickle", "unsafe_load", "full_load", "load_state_dict_from_url"),
}
LOADERS = {"torch", "jit", "yaml", "np", "numpy", "pickle", "hub", "marshal"}  # that have a `load`
KEYWORDS = {("trust_remote_code", True), ("allow_pickle", True), ("weights_only", False)}
NAMES = CALLS | MODULES | ATTRIBUTES | {"load"} | {name for name, _ in KEYWORDS}
WORDS = "|".join(sorted(name.rpartition(".")[2] for name in NAMES))
# a program without these words has no such construct; other letters may stand for those of a word
SUSPECT = re.compile(rf"\b(?:{WORDS})\b|[^\x00-\x7f]")
IMPORT = ["importlib.import_module"]
ALLOWED = {
    "util/importing.py": ["exec_module", "import_module"],  # modules and files that the user names
    # modules of the package itself, or of a constant name
    "__init__.py": IMPORT,
    "catalogue/entries.py": IMPORT,
    "catalogue/parse.py": IMPORT,
    "core/protocols.py": IMPORT,
    "envs/games/text_arena.py": IMPORT,
    "envs/openenv/connection.py": IMPORT,
    "envs/tools/mcp_connection.py": IMPORT,
    "envs/verifiers/loading.py": IMPORT,
    "envs/verifiers/session.py": IMPORT,
    "inference/vllm.py": IMPORT,
    "ray_workers/cluster.py": IMPORT,
    "envs/tasksets/loading.py": IMPORT,
    "ray_workers/serve.py": IMPORT,
    "ray_workers/server_host.py": IMPORT,
    "config/recipe_files/types.py": IMPORT,
    # safe loaders only
    "config/migrate/recipe_text.py": ["yaml"],
    "config/migrate/shell.py": ["yaml"],
    "config/recipe_files/read.py": ["yaml"],
    "tasks/tables/dataset_references.py": ["yaml"],
}


def code_runners(source: str) -> list[str]:
    """Every construct of a program that could execute what it reads."""
    if not SUSPECT.search(source):
        return []
    return [name for node in ast.walk(ast.parse(source)) for name in constructs(node)]


def constructs(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) if name in CALLS:
            yield name
        case ast.Import(names=names):
            yield from (alias.name for alias in names if is_code_module(alias.name))
        case ast.ImportFrom(module=str(module)) if is_code_module(module):
            yield module
        case ast.ImportFrom(module=str(module), names=names):
            full = (f"{module}.{alias.name}" for alias in names)
            yield from (name for name in full if is_code_name(name))
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr="load"):
            yield from [f"{owner}.load"] * (owner in LOADERS)
        case ast.Attribute(attr=name) if name in ATTRIBUTES:
            yield name
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value="load"), *_]):
            yield "getattr load"
        case ast.keyword(arg="trust_remote_code", value=ast.Constant(value=False)):
            pass
        case ast.keyword(arg="trust_remote_code"):
            yield "trust_remote_code"
        case ast.keyword(arg=str(name), value=ast.Constant(value)) if (name, value) in KEYWORDS:
            yield f"{name}={value}"


def is_code_module(name: str) -> bool:
    return name in MODULES or name.partition(".")[0] in MODULES


def is_code_name(name: str) -> bool:
    owner, _, attribute = name.rpartition(".")
    from_builtins = owner == "builtins" and attribute in CALLS
    from_loader = owner.rpartition(".")[2] in LOADERS and attribute == "load"
    return from_builtins or from_loader or is_code_module(name) or attribute in ATTRIBUTES


def test_package_executes_nothing_that_it_reads():
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    assert len(files) > 50
    runners = {name: code_runners(path.read_text()) for name, path in files.items()}
    assert {name: sorted(found) for name, found in runners.items() if found} == ALLOWED


@pytest.mark.parametrize(
    ("source", "construct"),
    [
        ("eval('1')", "eval"),
        ("run = exec", "exec"),
        ("import pickle", "pickle"),
        ("import _pickle as p", "_pickle"),
        ("from marshal import loads", "marshal"),
        ("from builtins import eval as e", "builtins.eval"),
        ("import yaml\nyaml.load('x')", "yaml"),
        ("import torch\ntorch.load('x')", "torch.load"),
        ("from torch import load", "torch.load"),
        ("torch.jit.load('x')", "jit.load"),
        ("from torch import jit", "torch.jit"),
        ("import torch.package", "torch.package"),
        ("getattr(torch, 'load')('x')", "getattr load"),
        ("np.load('x', allow_pickle=True)", "np.load"),
        ("f(allow_pickle=True)", "allow_pickle=True"),
        ("f(weights_only=False)", "weights_only=False"),
        ("pandas.read_pickle('x')", "read_pickle"),
        ("loader.exec_module(module)", "exec_module"),
        ("from importlib import import_module", "importlib.import_module"),
        ("f(trust_remote_code=True)", "trust_remote_code"),
        ("f(trust_remote_code=user)", "trust_remote_code"),
    ],
)
def test_each_way_to_execute_code_is_detected(source, construct):
    assert construct in code_runners(source)


@pytest.mark.parametrize(
    "source",
    [
        "policy.load(weights)",
        "json.load(file)",
        "f(allow_pickle=False)",
        "f(weights_only=True)",
        "model.eval()",
        "re.compile('x')",
    ],
)
def test_code_that_only_reads_data_is_not_reported(source):
    assert code_runners(source) == []
