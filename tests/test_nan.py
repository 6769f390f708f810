"""No code of the package replaces NaN by a number."""

import ast

from tests.helpers.paths import ROOT

REPLACING = {"nan_to_num", "nan_to_num_", "nansum", "nanmean", "nanmedian", "nanmax", "nanmin"}


def replaced_nans(source: str) -> list[str]:
    """The names of functions and methods in a program that replace or skip NaN."""
    if not any(name in source for name in REPLACING):
        return []
    nodes = ast.walk(ast.parse(source))
    names = [getattr(node, "attr", getattr(node, "id", "")) for node in nodes]
    return [name for name in names if name in REPLACING]


def test_no_code_replaces_nan():
    files = list((ROOT / "grupo").rglob("*.py"))
    assert len(files) > 300
    found = {str(file): replaced_nans(file.read_text()) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def test_each_way_to_replace_nan_is_detected():
    assert replaced_nans("x.nan_to_num()") == ["nan_to_num"]
    assert replaced_nans("torch.nan_to_num(x, 0.0)") == ["nan_to_num"]
    assert replaced_nans("from torch import nansum\nnansum(x)") == ["nansum"]
