"""One error for everything that a loader can raise."""

import pytest

from grupo.util.errors import ConfigError
from grupo.util.exit_codes import EXIT_STOPPED, CommandError
from grupo.util.importing import import_object
from grupo.util.loader_errors import loader_errors


class Own(BaseException):
    """An error of a user's own, such as pytest's for a skipped test."""


RAISED = (
    *(OSError(5, "Input/output error"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")),
    *(ValueError("a"), RecursionError("deep"), MemoryError(), OverflowError("large"), KeyError(1)),
    *(
        ImportError("b"),
        StopIteration(),
        SystemExit(0),
        AssertionError(),
        Own(),
    ),
)


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_error_becomes_a_config_error_with_its_cause(error):
    with pytest.raises(ConfigError) as caught, loader_errors("tasks.jsonl"):
        raise error
    assert str(caught.value).startswith("tasks.jsonl: ")
    assert type(error).__name__ in str(caught.value)
    assert caught.value.__cause__ is error
    assert f"{__file__}, line " in str(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), CommandError("a")])
def test_interrupts_and_errors_of_runs_pass(error):
    with pytest.raises(type(error)) as caught, loader_errors("tasks.jsonl"):
        raise error
    assert caught.value is error
    assert CommandError.exit_code == EXIT_STOPPED


def test_config_error_keeps_its_message_and_gets_the_line_once():
    with pytest.raises(ConfigError) as caught, loader_errors("b"), loader_errors("a"):
        raise ConfigError("steps: 0")
    assert str(caught.value).startswith("a: steps: 0 (")
    assert str(caught.value).count(", line ") == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import json\njson.loads('{')\n", "JSONDecodeError: .*mine.py, line 2"),  # not json's line
        ("def f(:\n", "SyntaxError: .*mine.py, line 1"),
        ("def f(): f()\nf()\n", "RecursionError: .*mine.py, line 1"),
        (
            "from grupo.algo.losses import Clip\n\nClip(-1.0)\n",
            "Clip.clip_low: -1.0.*mine.py, line 3",
        ),
        ("class E(Exception):\n  def __str__(self): 1 / 0\nraise E\n", "E: <exception str.*line 3"),
        ("raise ValueError('a\\nb')\n", "ValueError: a b .*mine.py, line 1"),
        ("x = '\\0'\n".replace("\\0", "\0"), "mine.py does not import: .*null bytes"),
    ],
)
def test_error_of_a_users_file_has_its_line(tmp_path, code, message):
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(ConfigError, match=message):
        import_object(f"{tmp_path}/mine.py:x")


def test_attribute_that_raises_is_a_config_error(tmp_path):
    (tmp_path / "odd.py").write_text(
        "class Odd:\n  def __getattr__(self, name):\n    raise RuntimeError(name)\nodd = Odd()\n"
    )
    with pytest.raises(ConfigError, match=r"RuntimeError: x \(.*odd.py, line 3"):
        import_object(f"{tmp_path}/odd.py:odd.x")
