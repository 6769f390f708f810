"""Records of papers are found in the source of all modules, without importing one."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

from grupo.catalogue.entries import methods
from grupo.catalogue.papers import PaperRecord, find_papers, papers, parse_paper, source_folders
from grupo.core.paper import KINDS, Paper, Source
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

TREE = 'PAPER = Paper(title="Tree attention", kind="policy", shown=("docs/speed.md#speed",))'


def imported_paper(record: PaperRecord) -> Paper:
    """The record that the module has when it is imported."""
    if record.file.startswith("grupo/"):
        name = record.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return import_module(name).PAPER
    return vars(load_module_file(ROOT / record.file))["PAPER"]


def test_every_record_of_the_tree_is_found():
    sources = [*ROOT.glob("grupo/**/*.py"), *ROOT.glob("recipes/**/*.py")]
    with_record = {
        path.relative_to(ROOT).as_posix()
        for path in sources
        if re.search(r"^PAPER\b.*=", path.read_text(), re.MULTILINE)
    }
    assert {record.file for record in papers()} == with_record
    assert {record.name for record in papers() if record.paper.kind == "method"} == {
        entry.key for entry in methods()
    }


@pytest.mark.parametrize("record", papers(), ids=lambda record: record.name)
def test_a_record_of_the_source_equals_that_of_the_module(record):
    assert imported_paper(record) == record.paper


def test_finding_all_records_imports_neither_torch_nor_a_method():
    program = (
        "import sys; from grupo.catalogue.papers import papers; assert len(papers()) > 200\n"
        "print([name for name in sys.modules if name.startswith(('torch', 'grupo.methods'))])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_record_has_all_its_fields():
    text = (
        '"""Doc."""\n\nfrom grupo.core.paper import Paper, Source\n\n'
        'PAPER: Paper = Paper("A title", kind="sampler", catalogue=("a", "b"),\n'
        '    source=Source("code", place="owner/name"), checked=("golden",))\n'
    )
    assert parse_paper(text, "x.py") == Paper(
        "A title",
        kind="sampler",
        catalogue=("a", "b"),
        source=Source("code", "owner/name"),
        checked=("golden",),
    )
    assert parse_paper("PAPERS = 1\nx = PAPER\n", "x.py") is None
    assert parse_paper("def late():\n    PAPER = 1\n", "x.py") is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('Paper(title="A", use=USE)', r"a\.py: PAPER: malformed node or string"),
        ('Paper(title=str("A"))', r"a\.py: PAPER: str\(…\) is no literal\. Allowed: Paper\(…\)"),
        ('Paper(titel="A")', r"a\.py: PAPER: .*unexpected keyword argument 'titel'"),
        ('Paper(title="A", kind="samplr")', r"Paper\.kind: 'samplr' .*Did you mean 'sampler'\?"),
        ("Paper(**{})", r"a\.py: PAPER: .*unexpected keyword argument '\*\*'"),
        ("7", r"a\.py: PAPER: 7\. Allowed: Paper\(…\)"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused_with_its_file(call, message):
    with pytest.raises(ConfigError, match=message):
        parse_paper(f"PAPER = {call}\n", "a.py")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "metod"}, r"Paper\.kind: 'metod' is no kind of paper\. Did you mean 'method'\?"),
        ({"catalogue": "dapo"}, r"Paper\.catalogue: 'dapo'\. Allowed: a tuple \(…,\) of strings"),
        ({"checked": ("golden", 1)}, r"Paper\.checked: \('golden', 1\)\. Allowed: a tuple"),
        ({"source": "paper"}, r"Paper\.source: 'paper'\. Allowed: Source\(…\) or None"),
        ({"use": 3}, r"Paper\.use: 3\. Allowed: a string"),
        (
            {"shown": ("tests/test_x.py",)},
            r"Paper\.shown: 'tests/test_x\.py'\. Allowed: tests/….py::test_name, or docs/page",
        ),
        ({"shown": ("docs/speed.md",)}, r"Paper\.shown: 'docs/speed\.md'\. Allowed"),
        ({"shown": ("../docs/speed.md#speed",)}, r"Paper\.shown: '\.\./docs"),
    ],
)
def test_invalid_fields_of_a_record_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        Paper(title="A", **fields)


def test_every_kind_has_a_meaning():
    assert all(KINDS.values())
    assert {record.paper.kind for record in papers()} <= set(KINDS)


@pytest.fixture
def folder(tmp_path):
    """A package and recipes, each with a record."""
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "inner" / "__init__.py").write_text(TREE)
    (tmp_path / "package" / "plain.py").write_text("x = 1\n")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "light.py").write_text(TREE.replace("policy", "pipeline"))
    return tmp_path


def files_below(package):
    return [record.file for record in find_papers(source_folders(package))]


def test_recipes_beside_the_package_of_a_checkout_are_read(folder):
    assert files_below(folder / "package") == ["package/inner/__init__.py", "recipes/light.py"]


def test_recipes_of_an_installed_package_are_read_and_those_of_other_projects_are_not(folder):
    (folder / "package" / "recipes").mkdir()
    (folder / "package" / "recipes" / "own.py").write_text(TREE)
    assert files_below(folder / "package") == ["package/inner/__init__.py", "recipes/own.py"]


def test_a_record_is_named_by_its_module_and_a_method_by_its_file():
    paper = Paper("A")
    assert PaperRecord("grupo/methods/dapo.py", paper).name == "dapo"
    assert PaperRecord("grupo/kernels/packing/__init__.py", paper).name == "grupo/kernels/packing"
    assert PaperRecord("recipes/sums/dapo.py", paper).name == "recipes/sums/dapo"
