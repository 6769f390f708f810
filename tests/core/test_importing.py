"""Things of other people's files, by name."""

import math
import sys

import pytest

from grupo.core.component import to_code
from grupo.core.errors import ConfigError
from grupo.core.importing import address_of, import_object, load_module, load_module_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with modules of a user's, in which the user works."""
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
    monkeypatch.setattr(sys, "lookup", [*sys.path])
    yield tmp_path
    for name in ("judges", "broken", "raises", "leaves", "needy"):
        sys.modules.pop(name, None)


def test_a_thing_of_a_module():
    assert import_object("math:pi") == math.pi
    assert import_object("grupo.core.group_ops:mean").__name__ == "mean"


def test_a_thing_of_a_file_by_any_way_to_it(folder):
    assert import_object("judges.py:root")(9.0) == 3.0
    assert import_object("./judges.py:root") is import_object(f"{folder}/judges.py:root")


def test_a_thing_inside_a_thing(folder):
    assert import_object("judges.py:Judge.root")(4.0) == 2.0
    assert import_object("judges.py:Judge.strict") is True


def test_a_module_beside_the_user_is_found(folder):
    assert import_object("judges:root")(9.0) == 3.0


def test_a_file_may_import_its_neighbours_wherever_the_user_works(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "beside.py").write_text("SIDE = 1\n")
    (elsewhere / "recipe.py").write_text("from beside import SIDE\n")
    assert import_object(f"{elsewhere / 'recipe.py'}:SIDE") == 1


def test_a_file_is_loaded_once(folder):
    assert load_module_file(folder / "judges.py") is load_module_file(folder / "judges.py")
    assert load_module("judges.py") is load_module_file(folder / "judges.py")


def test_an_address_leads_back(folder):
    for address in ("grupo.core.group_ops:mean", "grupo.algo.losses.policy_gradient:Clip"):
        assert address_of(import_object(address)) == address
    root = import_object("judges.py:root")
    assert address_of(root) == f"{folder / 'judges.py'}:root"
    assert import_object(address_of(root)) is root


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("math", "'math' is no address. Write module:name or path/to/file.py:name."),
        (":pi", "':pi' is no address"),
        ("math:", "'math:' is no address"),
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
def test_what_is_not_there_is_refused_with_the_line_that_says_so(folder, address, said):
    with pytest.raises(ConfigError) as refusal:
        import_object(address)
    assert said in str(refusal.value)


def test_a_file_that_did_not_import_is_tried_again_when_it_is_mended(folder):
    with pytest.raises(ConfigError):
        import_object("raises.py:x")
    (folder / "raises.py").write_text("x = 1\n")
    assert import_object("raises.py:x") == 1


def test_what_has_no_address_is_refused():
    def inside() -> None:
        pass

    for thing in (inside, lambda: None, len.__call__, 3):
        with pytest.raises(ConfigError, match="has no address: move it to the top of a file"):
            address_of(thing)
    with pytest.raises(ConfigError, match=r"^env: .* has no address"):
        address_of(inside, "env")


def test_what_lies_in_the_script_that_runs_is_refused():
    class Fake:
        pass

    Fake.__module__, Fake.__qualname__ = "__main__", "Fake"
    with pytest.raises(ConfigError, match="Fake is in the script that runs"):
        address_of(Fake)


def test_a_name_that_means_something_else_by_now_is_refused():
    def pi() -> None:
        pass

    pi.__module__, pi.__qualname__ = "math", "pi"
    with pytest.raises(ConfigError, match="math:pi is something else by now"):
        address_of(pi)


def test_what_a_file_holds_prints_under_the_files_name(tmp_path):
    (tmp_path / "mine.py").write_text("def halved(x, batch):\n    return x / 2\n")
    assert to_code(import_object(f"{tmp_path}/mine.py:halved")) == "mine.halved"
