"""Learning curves and figures of a comparison."""

import math
from dataclasses import replace

import pytest

from grupo.compare import learning_curves, plots
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import Curve
from tests.helpers.fast_cases import fast_cases

NAN = math.nan
TOKENS = (0.0, 10.0, 30.0)


@pytest.fixture
def with_curves(measured):
    """Makes a result with given learning curves, by recipe and seed."""

    def make(scores: dict[str, list[tuple[float, ...]]]) -> ComparisonResult:
        result = measured({name: [curve[-1] for curve in seeds] for name, seeds in scores.items()})
        statuses = []
        for run in result.run_statuses:
            values = scores[run.run_spec.name][run.run_spec.seed]
            tokens = TOKENS[: len(values)]
            seconds = tuple((1 + run.run_spec.seed) * x for x in tokens)  # each seed is slower
            curve = Curve(tokens, seconds, values)
            statuses.append(replace(run, curves={"held_out": curve, "reward": curve}))
        return ComparisonResult(result.comparison, statuses)

    return make


def band(axes, index: int = 0) -> list[tuple[float, float]]:
    """The lower and upper edge of a confidence band at every point of its line."""
    points = axes.collections[index].get_paths()[0].vertices
    edges = []
    for at in axes.lines[index].get_xdata():
        ys = [y for x, y in points if x == pytest.approx(at)]
        edges.append((min(ys), max(ys)))
    return edges


def test_held_out_curve_has_a_point_per_evaluation_and_a_band_over_seeds(with_curves):
    held_out, *_ = learning_curves.draw_curves(
        with_curves({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 10, 30]
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 50, 70])
    # with two seeds, a quarter of the resamples is the lower one twice: the band is the range
    assert band(held_out) == [
        (pytest.approx(20), pytest.approx(20)),
        (pytest.approx(40), pytest.approx(60)),
        (pytest.approx(60), pytest.approx(80)),
    ]


def test_evaluations_lie_at_the_mean_seconds_of_the_seeds(with_curves):
    _, held_out, *_ = learning_curves.draw_curves(
        with_curves({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 15, 45]
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 50, 70])


def test_reward_curve_covers_the_range_of_all_seeds(with_curves):
    *_, reward = learning_curves.draw_curves(
        with_curves({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    xs = reward.lines[0].get_xdata()
    assert (xs[0], xs[-1]) == (0, 30)  # the seeds took 30 and 60 seconds
    # at 30 seconds the first is at 0.8, the second, a quarter of the way from 20 to 60, at 0.6
    assert band(reward)[-1] == (pytest.approx(0.6), pytest.approx(0.8))


def test_seeds_with_fewer_evaluations_are_matched_at_their_ends(with_curves):
    held_out, *_ = learning_curves.draw_curves(
        with_curves({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 20]  # the mean of 30 and 10
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 70])


def test_nan_score_is_a_gap(with_curves):
    held_out, *_ = learning_curves.draw_curves(
        with_curves({"grpo": [(0.2, NAN, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    mean = list(held_out.lines[0].get_ydata())
    assert (mean[0], math.isnan(mean[1]), mean[2]) == (20, True, pytest.approx(70))
    assert len(held_out.collections[0].get_paths()) <= 2


@pytest.mark.slow
def test_line_styles_are_distinct_and_the_baseline_is_black(with_curves):
    names = ["grpo", *(f"other {i}" for i in range(12))]
    fig = learning_curves.draw_curves(
        with_curves({name: [(0.1, 0.2), (0.1, 0.3)] for name in names}), ""
    )
    lines = [line for line in fig.axes[0].lines if line.get_label() in names]
    styles = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(styles) == len(names)
    assert next(x.get_color() for x in lines if x.get_label() == "grpo") == "#000000"


@pytest.mark.parametrize(
    "values",
    fast_cases(
        2,
        [
            {"grpo": [0.2], "mine": [0.3]},  # one seed: no interval
            {"grpo": [0.2, 0.4], "mine": ["crashed", "crashed"]},
            {"grpo": ["crashed", "waiting"], "mine": [0.2, 0.3]},
            {"grpo": [NAN, 0.4], "mine": [0.2, NAN]},
            {"grpo": [0.2, 0.4]},
        ],
    ),
)
def test_results_with_missing_runs_can_be_drawn(measured, values, tmp_path):
    assert plots.draw_figures(measured(values), tmp_path) == ["intervals.svg"]


@pytest.mark.slow
def test_colours_of_differences_show_their_verdicts(measured, tmp_path):
    """Six pairs: all above the baseline; some above and some below."""
    base = [0.1] * 6
    values = {"base": base, "same": [0.1, 0.2, 0.0, 0.1, 0.05, 0.15]}
    values["clear"] = [0.5 + 0.01 * seed for seed in range(6)]
    result = measured(values)
    assert {one.name: one.verdict for one in result.differences} == {
        "clear": "more, if differences are normal",
        "same": "inconclusive",
    }
    plots.draw_figures(result, tmp_path)
    svg = (tmp_path / "intervals.svg").read_text()
    assert "<!-- significant, if differences are normal -->" in svg
    assert "<!-- inconclusive -->" in svg
    assert "<!-- significant after correction -->" not in svg
