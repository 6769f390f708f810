"""The line of a user's code that is shown with an error, wherever packages are installed."""

import pytest

from grupo.util.error_location import error_location
from grupo.util.errors import ConfigError
from grupo.util.loader_errors import loader_errors


@pytest.mark.parametrize("packages", ["env/lib/python3.11/site-packages", "python3/dist-packages"])
def test_lines_of_packages_in_other_environments_are_not_the_users(tmp_path, packages, monkeypatch):
    (tmp_path / "mine.py").write_text("\nfail()\n")
    names: dict = {}
    fail = "def fail(): raise ValueError('a')"
    exec(compile(fail, tmp_path / packages / "installed.py", "exec"), names)
    code = compile((tmp_path / "mine.py").read_text(), tmp_path / "mine.py", "exec")
    with pytest.raises(ConfigError) as caught, loader_errors("mine"):
        exec(code, names)
    assert str(caught.value) == f"mine: ValueError: a ({tmp_path / 'mine.py'}, line 2)"
    assert isinstance(caught.value.__cause__, ValueError)
    monkeypatch.chdir(tmp_path)
    assert error_location(caught.value.__cause__) == "mine.py:2"
