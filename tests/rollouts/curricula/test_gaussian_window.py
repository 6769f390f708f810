"""GAIN-RL: shifts by hand, tasks near the centre of a window, and mistakes."""

from collections import Counter
from dataclasses import replace
from math import exp, nan

import pytest

from grupo.algo.advantages.window_shift import WindowShift
from grupo.config.validate import check_component_tasks
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Task
from grupo.rollouts.curricula import CurriculumRequest, GaussianWindow
from grupo.rollouts.history import History
from grupo.testing.batches import make_batch
from grupo.util.errors import ConfigError

TASKS = [Task(str(i), "?", columns={"concentration": i / 10}) for i in range(10)]


def request(num_tasks=4, num_tasks_drawn=0, **changes):
    return CurriculumRequest(TASKS, History(num_tasks_drawn), num_tasks, seed=0, **changes)


@pytest.mark.parametrize(
    ("rewards", "shift"),
    [
        ([1.0, 0.0], 268.5),  # 500 tanh(0) + 500 tanh(0.6)
        ([0.0, 0.0], 0.0),  # -380.8 + 268.5 < 0
        ([1.0, 1.0], 649.3),  # 380.8 + 268.5
    ],
)
def test_the_window_moves_by_accuracy_and_concentration(rewards, shift):
    signals = {"concentration": [[0.2, 0.2, 0.2], [0.4, 0.0, 0.0]]}  # 0.3 on average over rows
    batch = make_batch(group=[0, 0], reward=rewards, length=[3, 1], signals=signals)
    metrics = WindowShift().metrics(batch)
    assert metrics["curriculum/shift"] == pytest.approx(shift, abs=0.05)
    assert metrics["concentration"] == pytest.approx(0.3)
    assert WindowShift(max_shift=10.0).metrics(batch)["curriculum/shift"] <= 10.0


def test_the_centre_is_the_sum_of_the_shifts():
    window = resolve_schedules(GaussianWindow(), 0.5, {"curriculum/shift": [268.5, 0.0, 3.5]})
    assert window.center == 272.0
    assert resolve_schedules(GaussianWindow(), 0.0, {}).center == 0.0
    assert GaussianWindow().center.metric == "curriculum/shift"


def test_the_most_concentrated_tasks_come_first_and_a_narrow_window_moves():
    for center, keys in ((0, {"9", "8"}), (8.5, {"1", "0"})):
        drawn = GaussianWindow(center=center, width=0.3)(request(num_tasks=2))
        assert {task.key for task in drawn} == keys


def test_tasks_are_drawn_without_replacement_by_their_weights():
    window = GaussianWindow(center=0, width=2.0)
    steps = [window(request(1, num_tasks_drawn=i))[0].key for i in range(2000)]
    weights = [exp(-(i**2) / 8) for i in range(10)]
    counts = Counter(steps)
    for i in range(4):
        assert counts[str(9 - i)] / 2000 == pytest.approx(weights[i] / sum(weights), abs=0.04)
    assert len({task.key for task in window(request(10))}) == 10
    assert window(replace(request(), round_index=1)) == []
    assert window(request()) == window(request())


@pytest.mark.parametrize(("columns", "shown"), [({}, "None"), ({"concentration": nan}, "nan")])
def test_a_task_without_a_number_is_an_error(columns, shown):
    with pytest.raises(ConfigError, match=f"a has {shown} in the column 'concentration', by which"):
        check_component_tasks(GaussianWindow(center=0), [*TASKS, Task("a", "?", columns=columns)])
