import pytest

from grupo.core.signal_names import is_comparison, is_step_value, split_name, temperature_of


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
    assert split_name(name) == parts


def test_comparisons_marks_and_temperatures_are_told_apart():
    assert is_comparison("reverse_kl@ref")
    assert not is_comparison("logp@ref")
    assert is_step_value("step/state")
    assert not is_step_value("entropy")
    assert (temperature_of("t=0.8"), temperature_of("teacher"), temperature_of("t=hot")) == (
        0.8,
        0.0,
        0.0,
    )
