"""MAP-Elites: cells, the archive of a grid, its coverage and its QD score."""

from random import Random

import pytest

from grupo.core.elites import Axis, Elites, archive_metrics
from grupo.core.kept_rollouts import MAX_REPLAYS
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.history import History
from grupo.util.errors import ConfigError
from tests.helpers.histories import restored

TASK = Task("t", "?")
GRID = Elites((Axis("x", 0.0, 1.0, 2), Axis("y", 0.0, 1.0, 2)))


def attempt(reward: float, x: float, y: float) -> Rollout:
    return Rollout(reward=reward, reward_terms={"x": x, "y": y})


GOLDEN = (attempt(1.0, 0.1, 0.2), attempt(2.0, 0.3, 0.4), attempt(0.5, 0.9, 0.6))


def archive(rule: Elites, rollouts: tuple[Rollout, ...]) -> dict[tuple[int, ...] | None, float]:
    """The reward of the kept rollout of each cell."""
    return {rule.cell(rollouts[i]): rollouts[i].reward for i in rule(rollouts)}


def test_each_cell_keeps_its_best_rollout():
    assert archive(GRID, GOLDEN) == {(0, 0): 2.0, (1, 1): 0.5}
    assert GRID.coverage(GOLDEN) == 0.5  # two of four cells
    assert GRID.qd_score(GOLDEN) == 2.5


def test_the_score_of_a_cell_counts_from_the_threshold():
    above_half = Elites(GRID.axes, threshold=0.5)
    assert archive(above_half, GOLDEN) == {(0, 0): 2.0}  # 0.5 is not above 0.5
    assert above_half.coverage(GOLDEN) == 0.25
    assert above_half.qd_score(GOLDEN) == 1.5


def test_of_equal_rollouts_the_oldest_stays():
    assert GRID([attempt(1.0, 0.1, 0.1), attempt(1.0, 0.2, 0.2)]) == [0]


def test_one_cell_keeps_the_best_rollout():
    rule = Elites()
    assert rule(GOLDEN) == [1]
    assert (rule.coverage(GOLDEN), rule.qd_score(GOLDEN)) == (1.0, 2.0)
    assert (rule.coverage(()), rule.qd_score(())) == (0.0, 0.0)


def test_values_outside_of_the_range_are_in_the_outer_intervals():
    axis = Axis("x", -1.0, 3.0, 4)
    values = (-1e30, -1.0, -0.5, 0.0, 2.999, 3.0, 1e30)
    assert [axis.index(x) for x in values] == [0, 0, 0, 1, 3, 3, 3]


@pytest.mark.parametrize(
    "rollout",
    [
        attempt(float("inf"), 0.1, 0.1),
        attempt(float("nan"), 0.1, 0.1),
        attempt(1.0, float("nan"), 0.1),
        attempt(1.0, 0.1, float("inf")),
        attempt(0.0, 0.1, 0.1),
        attempt(-1.0, 0.1, 0.1),
        Rollout(reward=1.0, reward_terms={"x": 0.1}),
    ],
)
def test_a_rollout_without_a_finite_reward_above_the_threshold_and_a_place_is_not_kept(rollout):
    assert GRID([rollout]) == []
    assert GRID.coverage([rollout]) == 0.0


def test_a_dropped_rollout_makes_no_difference_to_later_calls():
    rng = Random(0)
    stream = [attempt(rng.random(), rng.random(), rng.random()) for _ in range(60)]
    kept: list[Rollout] = []
    for rollout in stream:
        candidates = [*kept, rollout]
        kept = [candidates[i] for i in GRID(candidates)]
    assert {r.reward for r in kept} == set(archive(GRID, tuple(stream)).values())


def test_the_archive_equals_that_of_ribs():
    archives = pytest.importorskip("ribs.archives", reason="needs the package ribs")
    rng = Random(1)
    rule = Elites((Axis("x", -2.0, 2.0, 7), Axis("y", 0.0, 1.0, 5)))
    attempts = [attempt(rng.uniform(0, 9), rng.uniform(-3, 3), rng.random()) for _ in range(300)]
    other = archives.GridArchive(
        solution_dim=1, dims=[7, 5], ranges=[(-2.0, 2.0), (0.0, 1.0)], qd_score_offset=0.0
    )
    for number, rollout in enumerate(attempts):
        measures = [[rollout.reward_terms["x"], rollout.reward_terms["y"]]]
        other.add([[number]], [rollout.reward], measures)
    kept = sorted(int(number) for (number,) in other.data("solution"))
    assert [*rule(attempts)] == kept
    assert rule.coverage(attempts) == pytest.approx(float(other.stats.coverage), abs=1e-12)
    assert rule.qd_score(attempts) == pytest.approx(float(other.stats.qd_score), rel=1e-12)


def test_a_history_keeps_the_archive_and_names_each_attempt():
    history = History()
    history.append_groups(0, [Group(TASK, (attempt(1.0, 0.1, 0.2),))], [GRID])
    other = Group(Task("other", "?"), (attempt(0.0, 0.1, 0.1), Rollout(error="it hung")))
    later = Group(TASK, (attempt(2.0, 0.3, 0.4), Rollout(error="it hung"), attempt(0.5, 0.9, 0.6)))
    history.append_groups(1, [other, later], [GRID])
    assert [(r.id, r.reward) for r in history.with_replays(TASK).replays] == [
        ("2.2", 2.0),  # step 2, the third rollout of the step
        ("2.4", 0.5),
    ]
    assert restored(history) == history


def test_archive_metrics_are_means_over_the_tasks():
    replays = [GOLDEN, (attempt(1.0, 0.1, 0.1),)]
    assert archive_metrics([GRID], replays) == {
        "archive/coverage": (0.5 + 0.25) / 2,
        "archive/qd_score": (2.5 + 1.0) / 2,
        "archive/best": 2.0,
    }
    assert archive_metrics([GRID], []) == {}
    assert archive_metrics([], replays) == {}


def test_a_grid_beyond_the_bound_and_an_empty_range_are_refused():
    with pytest.raises(ConfigError, match=r"Elites\.axes.*at most 32,768 cells; .*1,000,000"):
        Elites((Axis("x", 0.0, 1.0, 1000), Axis("y", 0.0, 1.0, 1000)))
    assert Elites((Axis("x", 0.0, 1.0, MAX_REPLAYS),)).num_cells == MAX_REPLAYS
    with pytest.raises(ConfigError, match=r"Axis\.high: 1\.0\. Allowed: above low, 1"):
        Axis("x", 1.0, 1.0)
