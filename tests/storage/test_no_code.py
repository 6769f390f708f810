"""What is loaded is data: nothing in the package turns a file's bytes into running code."""

import ast

from tests.helpers.paths import ROOT

PACKAGE = ROOT / "grupo"
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def runs_code(source: str) -> list[str]:
    """Every place in a program that could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                found.append(name)
            case ast.Import(names=names):
                found += [alias.name for alias in names if alias.name in MODULES]
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                found.append(module)
            case ast.Attribute(value=ast.Name(id="torch"), attr="load"):
                found.append("torch.load")
            case ast.keyword(arg="trust_remote_code"):
                found.append("trust_remote_code")
    return found


def test_nothing_in_the_package_runs_what_it_reads():
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 50
    assert {str(f): runs_code(f.read_text()) for f in files if runs_code(f.read_text())} == {}


def test_each_way_to_run_code_would_be_seen():
    assert runs_code("eval('1')") == ["eval"]
    assert runs_code("import pickle") == ["pickle"]
    assert runs_code("from marshal import loads") == ["marshal"]
    assert runs_code("import torch\ntorch.load('x')") == ["torch.load"]
    assert runs_code("f(trust_remote_code=True)") == ["trust_remote_code"]
