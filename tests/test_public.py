import subprocess
import sys

import pytest

import grupo


def test_public_names_are_sorted_and_importable():
    assert set(grupo.__all__) == {name for names in grupo._MODULES.values() for name in names}
    assert grupo.__all__ == sorted(grupo.__all__, key=lambda name: (not name.isupper(), name))
    for name in grupo.__all__:
        assert getattr(grupo, name).__module__.startswith("grupo.")


def test_no_module_hides_a_public_name():
    program = (
        "import importlib, pkgutil, grupo\n"
        "modules = {m.name for m in pkgutil.iter_modules(grupo.__path__)}\n"
        "print(sorted(modules & set(grupo.__all__)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="trian"):
        _ = grupo.trian


def test_importing_the_package_imports_neither_torch_nor_transformers():
    program = "import sys, grupo; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
