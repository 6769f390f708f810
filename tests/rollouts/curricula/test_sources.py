"""The bandit over sources of tasks: advantages by hand, probabilities, draws and mistakes."""

from collections import Counter
from dataclasses import replace
from math import log, sqrt

import pytest

from grupo.config.validate import check_component_tasks
from grupo.core.task_statistic import ScoredGroup
from grupo.core.types import Group, Rollout, Task
from grupo.rollouts.curricula import CurriculumRequest, RecentAdvantages, SourceBandit
from grupo.rollouts.curricula.sources import bandit_probabilities
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.util.errors import ConfigError

SOURCES = ("easy", "hard")
TASKS = [Task(f"{source} {i}", "?", source=source) for i in range(3) for source in SOURCES]
BANDIT = SourceBandit()


def group(task, *rewards):
    return Group(task, tuple(Rollout(reward=r) for r in rewards))


def request(curriculum, *groups, num_tasks=1000):
    history = History(statistics_by_source=StatisticStore(curriculum.requires.source_statistics))
    history.append_groups(0, groups)
    return CurriculumRequest(TASKS, history, num_tasks, seed=0)


def test_the_last_advantages_of_a_source_are_averaged():
    statistic = RecentAdvantages(6)
    state = statistic.initial_state
    assert (statistic.mean(state), len(state)) == (0.0, 7)
    for rewards, mean in (
        ((1.0, 0.0, 0.0, 0.0), (1.5 + 3 * 0.5) / 4),  # s = 1/2
        ((1.0, 1.0, 1.0, 1.0), (2 * 0.5 + 4 * 0.0) / 6),  # the two oldest are replaced
    ):
        state = statistic(state, ScoredGroup(0, rewards))
        assert statistic.mean(state) == pytest.approx(mean, abs=1e-5)
    assert state[0] == 8


def test_probabilities_of_two_sources_by_hand():
    first = bandit_probabilities([0.8, 0.2], [100, 100], 0.1)  # bounds 1.1241 and 0.5241
    assert first == pytest.approx([0.9975, 0.0025], abs=5e-5)
    second = bandit_probabilities([0.8, 0.2], [9990, 10], 0.1)  # bounds 0.8429 and 1.4941
    assert second == pytest.approx([0.0015, 0.9985], abs=5e-5)


def test_sources_without_groups_are_equally_likely():
    asked = request(BANDIT)
    assert BANDIT.probabilities(asked.history, SOURCES) == {"easy": 0.5, "hard": 0.5}
    counts = Counter(task.source for task in BANDIT(asked))
    assert 450 < counts["easy"] < 550


def test_a_source_whose_rollouts_differ_is_drawn_and_its_tasks_are_equally_likely():
    solved = [group(TASKS[0], 1, 1, 1, 1)] * 50
    mixed = [group(TASKS[1], 1, 0, 1, 0)] * 50  # |A| = 1/2 / sqrt(1/3)
    asked = request(BANDIT, *solved, *mixed)
    share = 1 / (1 + 2.718281828 ** (-(sqrt(3) / 2) / 0.1))
    probabilities = BANDIT.probabilities(asked.history, SOURCES)
    assert probabilities["hard"] == pytest.approx(share, abs=1e-4)
    counts = Counter(task.key for task in BANDIT(asked))
    assert all(300 < counts[f"hard {i}"] < 366 for i in range(3))


def test_a_source_that_was_rarely_drawn_is_drawn_again():
    asked = request(BANDIT, *[group(TASKS[0], 1, 0)] * 100, group(TASKS[1], 0, 0))
    bounds = [
        0.5 / sqrt(0.5) + sqrt(2 * log(203) / 201),  # 200 of 202 rollouts
        0.0 + sqrt(2 * log(203) / 3),
    ]
    odds = 2.718281828 ** ((bounds[1] - bounds[0]) / 0.1)
    probabilities = BANDIT.probabilities(asked.history, SOURCES)
    assert probabilities["hard"] == pytest.approx(odds / (1 + odds), abs=1e-4)


def test_draws_depend_on_the_tasks_drawn_so_far_and_on_nothing_else():
    asked = request(BANDIT, num_tasks=8)
    later = replace(asked, history=replace(asked.history, num_tasks_drawn=8))
    assert BANDIT(asked) == BANDIT(asked)
    assert BANDIT(asked) != BANDIT(later)
    assert BANDIT(replace(asked, round_index=1)) == []


def test_named_sources_only_are_drawn():
    named = SourceBandit(("hard",))
    assert {task.source for task in named(request(named))} == {"hard"}


def test_a_source_that_no_task_has_is_an_error_with_the_nearest_name():
    message = (
        "SourceBandit.sources: no task has the source 'hrad'. Did you mean 'hard'? Allowed:"
        " easy, hard."
    )
    with pytest.raises(ConfigError) as caught:
        check_component_tasks(SourceBandit(("easy", "hrad")), TASKS)
    assert str(caught.value) == message
    check_component_tasks(SourceBandit(("easy",)), TASKS)
