"""The package loads data only: nothing in it executes the bytes of a file."""

import ast

from tests.helpers.paths import ROOT

PACKAGE = ROOT / "grupo"
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def runs_code(source: str) -> list[str]:
    """Every construct of a program that could execute what it reads."""
    constructs = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                constructs.append(name)
            case ast.Import(names=names):
                constructs += [alias.name for alias in names if alias.name in MODULES]
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                constructs.append(module)
            case ast.Attribute(value=ast.Name(id="torch"), attr="load"):
                constructs.append("torch.load")
            case ast.keyword(arg="trust_remote_code"):
                constructs.append("trust_remote_code")
    return constructs


def test_package_executes_nothing_that_it_reads():
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 50
    assert {str(f): runs_code(f.read_text()) for f in files if runs_code(f.read_text())} == {}


def test_each_way_to_execute_code_is_detected():
    assert runs_code("eval('1')") == ["eval"]
    assert runs_code("import pickle") == ["pickle"]
    assert runs_code("from marshal import loads") == ["marshal"]
    assert runs_code("import torch\ntorch.load('x')") == ["torch.load"]
    assert runs_code("f(trust_remote_code=True)") == ["trust_remote_code"]
