"""Import of objects by address."""

import math
import sys

import pytest

from grupo.core.component import to_code
from grupo.util.errors import ConfigError
from grupo.util.importing import address_of, import_object, load_module, load_module_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of a user, with modules in it."""
    (tmp_path / "judges.py").write_text(
        "from math import sqrt\n\n\ndef root(x):\n    return sqrt(x)\n\n\n"
        "class Judge:\n    strict = True\n\n    @staticmethod\n    def root(x):\n"
        "        return sqrt(x)\n"
    )
    (tmp_path / "broken.py").write_text("def f(:\n    pass\n")
    (tmp_path / "raises.py").write_text("\n\nx = 1 / 0\n")
    (tmp_path / "leaves.py").write_text("import sys\n\nsys.exit(3)\n")
    (tmp_path / "needy.py").write_text("import judges\nimport nothing_of_that_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in ("judges", "broken", "raises", "leaves", "needy"):
        sys.modules.pop(name, None)


def test_object_of_a_module():
    assert import_object("math:pi") == math.pi
    assert import_object("grupo.core.group_ops:mean").__name__ == "mean"


def test_object_of_a_file_by_any_path(folder):
    assert import_object("judges.py:root")(9.0) == 3.0
    assert import_object("./judges.py:root") is import_object(f"{folder}/judges.py:root")


def test_dotted_names(folder):
    assert import_object("judges.py:Judge.root")(4.0) == 2.0
    assert import_object("judges.py:Judge.strict") is True


def test_module_in_the_working_folder_is_found(folder):
    assert import_object("judges:root")(9.0) == 3.0


def test_file_can_import_its_neighbours_from_any_working_folder(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "beside.py").write_text("SIDE = 1\n")
    (elsewhere / "recipe.py").write_text("from beside import SIDE\n")
    assert import_object(f"{elsewhere / 'recipe.py'}:SIDE") == 1


def test_file_is_loaded_once(folder):
    assert load_module_file(folder / "judges.py") is load_module_file(folder / "judges.py")
    assert load_module("judges.py") is load_module_file(folder / "judges.py")


def test_address_of_an_imported_object_is_its_address(folder):
    for address in ("grupo.core.group_ops:mean", "grupo.algo.losses.policy_gradient:Clip"):
        assert address_of(import_object(address)) == address
    root = import_object("judges.py:root")
    assert address_of(root) == f"{folder / 'judges.py'}:root"
    assert import_object(address_of(root)) is root


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("math", "'math' is not an address. Allowed: module:name, path/to/file.py:name."),
        (":pi", "':pi' is not an address"),
        ("math:", "'math:' is not an address"),
        ("math:pie", "'math' has no 'pie'. Did you mean 'pi'?"),
        ("math:pi.deeper", "'math' has no 'deeper'"),
        ("judges.py:rot", "'judges.py' has no 'rot'. Did you mean 'root'? Allowed: Judge, root, s"),
        ("judge.py:root", "/judge.py'. Did you mean 'judges.py'? Allowed: "),
        ("nowhere/judges.py:root", "There is nothing to choose from."),
        ("judgez:root", "The module 'judgez' does not import: ModuleNotFoundError: No module na"),
        ("broken.py:f", "broken.py does not import: SyntaxError: invalid syntax ("),
        ("raises.py:x", "raises.py, line 3)"),
        ("raises:x", "The module 'raises' does not import: ZeroDivisionError: division by zero ("),
        ("leaves.py:x", "leaves.py does not import: SystemExit: 3 ("),
        ("leaves:x", "The module 'leaves' does not import: SystemExit: 3 ("),
        ("needy.py:x", "needy.py, line 2)"),
    ],
)
def test_missing_objects_are_rejected_with_the_line_of_the_error(folder, address, message):
    with pytest.raises(ConfigError) as caught:
        import_object(address)
    assert message in str(caught.value)


def test_fixed_file_is_imported_again(folder):
    with pytest.raises(ConfigError):
        import_object("raises.py:x")
    (folder / "raises.py").write_text("x = 1\n")
    assert import_object("raises.py:x") == 1


def test_objects_without_address_are_rejected():
    def inside() -> None:
        pass

    for obj in (inside, lambda: None, len.__call__, 3):
        with pytest.raises(ConfigError, match=r"has no address\. Define it at the top level"):
            address_of(obj)
    with pytest.raises(ConfigError, match=r"^env: .* has no address"):
        address_of(inside, "env")


def test_objects_of_the_running_script_are_rejected():
    class Fake:
        pass

    Fake.__module__, Fake.__qualname__ = "__main__", "Fake"
    with pytest.raises(ConfigError, match="Fake is defined in the script that runs"):
        address_of(Fake)


def test_replaced_name_is_rejected():
    def pi() -> None:
        pass

    pi.__module__, pi.__qualname__ = "math", "pi"
    with pytest.raises(ConfigError, match="math:pi is now another object"):
        address_of(pi)


def test_functions_of_a_file_print_with_the_file_name(tmp_path):
    (tmp_path / "mine.py").write_text("def halved(x, batch):\n    return x / 2\n")
    assert to_code(import_object(f"{tmp_path}/mine.py:halved")) == "mine.halved"
