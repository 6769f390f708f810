import pytest

from grupo.core.signal_names import is_comparison, is_step_value, split_name, temperature_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("logp@ref", ("logp", "ref")),
        ("entropy", ("entropy", "")),
        ("jsd@teacher", ("jsd", "teacher")),
        ("logp@t=0.8", ("logp", "t=0.8")),
    ],
)
def test_name_splits_into_quantity_and_model(name, expected):
    assert split_name(name) == expected


def test_comparisons_step_values_and_temperatures_are_recognised():
    assert is_comparison("reverse_kl@ref")
    assert not is_comparison("logp@ref")
    assert is_step_value("step/state")
    assert not is_step_value("entropy")
    assert temperature_of("t=0.8") == 0.8
    assert temperature_of("teacher") == temperature_of("t=hot") == 0.0
