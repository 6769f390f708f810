import pytest

from grupo.core.signal_names import compares, is_mark, split, tempered


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("logp@ref", ("logp", "ref")),
        ("entropy", ("entropy", "")),
        ("jsd@teacher", ("jsd", "teacher")),
        ("logp@t=0.8", ("logp", "t=0.8")),
    ],
)
def test_a_name_says_what_and_by_whom(name, parts):
    assert split(name) == parts


def test_comparisons_marks_and_temperatures_are_told_apart():
    assert compares("reverse_kl@ref")
    assert not compares("logp@ref")
    assert is_mark("mark/state")
    assert not is_mark("entropy")
    assert (tempered("t=0.8"), tempered("teacher"), tempered("t=hot")) == (0.8, 0.0, 0.0)
