"""docs/bias.md equals what `python -m grupo.evidence.exact docs/bias.md` writes."""

from pathlib import Path

import pytest

from grupo.algo.filters import KeepBest, KeepMaxVariance
from grupo.catalogue.entries import methods
from grupo.catalogue.search import find_entry
from grupo.evidence.exact import figure, page
from grupo.evidence.exact.measure import (
    CHOICES,
    GROUP_ARGUMENTS,
    Bias,
    bias_summary,
    measure_choices,
    measure_methods,
    sized_method,
)
from grupo.evidence.exact.reach import obstacle
from grupo.methods.clip_cov import clip_cov
from grupo.methods.delethink import delethink
from grupo.methods.gfpo import shortness
from grupo.methods.grpo import grpo
from grupo.methods.rloo import rloo
from grupo.rollouts.samplers import GroupSampler

PAGE = Path(__file__).parents[3] / "docs" / "bias.md"
FAST = ("dapo", "dr_grpo", "grpo", "gspo", "max_rl", "nsr", "opo", "passk_training", "rloo", "topr")


def lines_of_page():
    return PAGE.read_text(encoding="utf-8").splitlines()


def table_lines(biases):
    return page.table(biases).splitlines()[2:]


@pytest.fixture(scope="module")
def fast_biases():
    return dict(measure_methods(FAST))


@pytest.fixture(scope="module")
def choices():
    return measure_choices()


@pytest.mark.slow
def test_rows_of_the_page_equal_the_measured_ones(fast_biases):
    assert set(fast_biases) == set(FAST)
    assert set(table_lines(fast_biases.values())) <= {*lines_of_page()}


@pytest.mark.slow
def test_single_choices_of_the_page_equal_the_measured_ones(choices):
    lines = table_lines(choices)
    assert len(lines) == len(CHOICES)
    start = lines_of_page().index(lines[0])
    assert lines_of_page()[start : start + len(lines)] == lines


def test_every_method_is_in_the_table_or_among_the_reasons():
    text = PAGE.read_text(encoding="utf-8")
    measured, others = text.split("## Methods that are not in the table")
    for entry in methods():
        link = f"(methods/{entry.key}.md)"
        assert link in (others if obstacle(entry.method) else measured), entry.key
        assert f"| [{entry.name}]{link} | " in measured or obstacle(entry.method), entry.key


@pytest.mark.slow
def test_the_page_equals_what_the_command_writes():
    written = page.bias_page(measure_choices(), dict(measure_methods()))
    assert written == PAGE.read_text(encoding="utf-8"), f"run: {page.COMMAND}"


@pytest.mark.slow
def test_a_page_of_other_numbers_differs(fast_biases):
    grpo_row = fast_biases["grpo"]
    planted = Bias(
        grpo_row.name, {**grpo_row.moments, "tasks": fast_biases["rloo"].moments["tasks"]}
    )
    assert not set(table_lines([planted])) <= {*lines_of_page()}


@pytest.mark.slow
def test_rows_are_sorted_by_the_largest_angle(choices, fast_biases):
    text = page.bias_page(choices, fast_biases)
    assert text.index("| [RLOO]") < text.index("| [DAPO]") < text.index("| [GRPO]")
    assert text.index("| [GRPO]") < text.index("| [NSR]")


def test_a_tie_in_the_last_shown_digit_does_not_depend_on_rounding_errors():
    assert page._number(0.4375) == page._number(0.4375 - 1e-16) == page._number(0.4375 + 1e-16)
    assert page._degrees(-1e-9) == page._degrees(1e-9) == "0.0"


def test_methods_keep_their_fraction_of_the_group():
    assert sized_method(find_entry("pods"), 8).filter == KeepMaxVariance(2)
    assert sized_method(find_entry("gfpo"), 4).filter == KeepBest(2, shortness)
    assert sized_method(find_entry("mc_grpo"), 8).sampler == GroupSampler(9)
    assert sized_method(find_entry("dapo"), 4).sampler == GroupSampler(4)
    assert set(GROUP_ARGUMENTS) <= {entry.key for entry in methods()}


@pytest.mark.slow
def test_methods_with_equal_angles_share_a_line_of_the_figure(tmp_path, fast_biases):
    lines = figure.names_by_angles(fast_biases)
    assert sorted(lines[0.0, 0.0, 0.0]) == ["Dr. GRPO", "RLOO", "TOPR"]
    assert sorted(name for names in lines.values() for name in names) == sorted(
        bias.name[1:].partition("]")[0] for bias in fast_biases.values()
    )
    assert figure.draw_angles(fast_biases, tmp_path / "bias.svg").stat().st_size > 10_000


def test_the_summary_names_the_angles_or_the_reason():
    assert bias_summary(grpo()) == (
        "5.1 degrees between tasks, 7.9 degrees with graded rewards, 24.2 degrees with lengths"
    )
    assert bias_summary(delethink()) == (
        "not measured: its sampler is `GroupSampler with ChunkedThinking`"
    )


def test_a_pseudo_random_draw_is_not_measured():
    assert obstacle(rloo()) == ""
    assert "`DropHighCovariance`" in obstacle(clip_cov())


def test_an_exception_of_a_component_is_in_the_summary():
    def failing(x, batch):
        raise ValueError("no such reward")

    assert bias_summary(grpo().replace(advantage=failing)) == (
        "not measured: it raised ValueError: no such reward"
    )
