"""What pictures show is what was measured."""

import math
from dataclasses import replace

import pytest

from grupo.compare import learning_curves, plots
from grupo.compare.result import ComparisonResult
from grupo.compare.run_status import Curve

NAN = math.nan
TOKENS = (0.0, 10.0, 30.0)


@pytest.fixture
def curved(measured):
    """A result of which every score on the way is given, by recipe and seed; nothing of time."""

    def make(scores: dict[str, list[tuple[float, ...]]]) -> ComparisonResult:
        result = measured({name: [some[-1] for some in seeds] for name, seeds in scores.items()})
        outcomes = []
        for outcome in result.run_statuses:
            values = scores[outcome.run_spec.name][outcome.run_spec.seed]
            spent = TOKENS[: len(values)]
            seconds = tuple((1 + outcome.run_spec.seed) * x for x in spent)  # each seed slower
            curve = Curve(spent, seconds, values)
            outcomes.append(replace(outcome, curves={"held_out": curve, "reward": curve}))
        return ComparisonResult(result.comparison, outcomes)

    return make


def edges(axes, place: int = 0) -> list[tuple[float, float]]:
    """From where to where a band goes, at every point of its line."""
    points = axes.collections[place].get_paths()[0].vertices
    found = []
    for at in axes.lines[place].get_xdata():
        ys = [y for x, y in points if x == pytest.approx(at)]
        found.append((min(ys), max(ys)))
    return found


def test_held_out_curves_have_a_point_for_each_try_and_a_band_over_seeds(curved):
    held_out, *_ = learning_curves.draw_curves(
        curved({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 10, 30]
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 50, 70])
    # of two seeds a quarter of all draws is twice the lower one: the band is their range
    assert edges(held_out) == [
        (pytest.approx(20), pytest.approx(20)),
        (pytest.approx(40), pytest.approx(60)),
        (pytest.approx(60), pytest.approx(80)),
    ]


def test_against_seconds_a_try_lies_at_the_mean_of_what_seeds_took(curved):
    _, held_out, *_ = learning_curves.draw_curves(
        curved({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 15, 45]
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 50, 70])  # nothing is lost


def test_rewards_go_as_far_as_all_seeds_went_with_a_band(curved):
    *_, reward = learning_curves.draw_curves(
        curved({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    xs = reward.lines[0].get_xdata()
    assert (xs[0], xs[-1]) == (0, 30)  # the first seed took 30 seconds, the other one 60
    # then the first is at 0.8, the other one, a quarter of its way from 20 to 60, at 0.6
    assert edges(reward)[-1] == (pytest.approx(0.6), pytest.approx(0.8))


def test_seeds_that_were_tried_less_often_are_met_at_their_ends(curved):
    held_out, *_ = learning_curves.draw_curves(
        curved({"grpo": [(0.2, 0.4, 0.8), (0.2, 0.6)]}), ""
    ).axes
    assert list(held_out.lines[0].get_xdata()) == [0, 20]  # the ends: 30 and 10
    assert list(held_out.lines[0].get_ydata()) == pytest.approx([20, 70])


def test_a_score_that_is_nan_is_a_gap_in_line_and_band(curved):
    held_out, *_ = learning_curves.draw_curves(
        curved({"grpo": [(0.2, NAN, 0.8), (0.2, 0.6, 0.6)]}), ""
    ).axes
    mean = list(held_out.lines[0].get_ydata())
    assert (mean[0], math.isnan(mean[1]), mean[2]) == (20, True, pytest.approx(70))
    assert len(held_out.collections[0].get_paths()) <= 2


def test_every_recipe_has_a_line_of_its_own_and_the_baseline_is_black(curved):
    names = ["grpo", *(f"other {i}" for i in range(12))]
    drawn = learning_curves.draw_curves(
        curved({name: [(0.1, 0.2), (0.1, 0.3)] for name in names}), ""
    )
    lines = [line for line in drawn.axes[0].lines if line.get_label() in names]
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == len(names)
    assert next(x.get_color() for x in lines if x.get_label() == "grpo") == "#000000"


@pytest.mark.parametrize(
    "values",
    [
        {"grpo": [0.2], "mine": [0.3]},  # one seed: no interval
        {"grpo": [0.2, 0.4], "mine": ["crashed", "crashed"]},
        {"grpo": ["crashed", "waiting"], "mine": [0.2, 0.3]},
        {"grpo": [NAN, 0.4], "mine": [0.2, NAN]},
        {"grpo": [0.2, 0.4]},
    ],
)
def test_whatever_became_of_runs_can_be_drawn(measured, values, tmp_path):
    assert plots.draw_figures(measured(values), tmp_path) == ["intervals.svg"]


def test_differences_say_by_their_colour_whether_they_survived(measured, tmp_path):
    """Of six pairs: all above; all above but unlike; some above, some below."""
    base = [0.1] * 6
    mine = {"base": base, "same": [0.1, 0.2, 0.0, 0.1, 0.05, 0.15]}
    mine["sure"] = [0.5 + 0.01 * seed for seed in range(6)]
    result = measured(mine)
    assert {one.name: one.verdict for one in result.differences} == {
        "sure": "more, if differences are normal",
        "same": "not told apart",
    }
    plots.draw_figures(result, tmp_path)
    said = (tmp_path / "intervals.svg").read_text()
    assert "<!-- told apart, if differences are normal -->" in said
    assert "<!-- not told apart -->" in said
    assert "<!-- told apart after correction -->" not in said
