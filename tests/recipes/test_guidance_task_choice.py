"""The tasks and arms of the comparison of curricula on sums of three sources."""

from collections import Counter

from grupo.rollouts.curricula import ShuffledTasks, SourceBandit
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

RECIPE = load_module_file(ROOT / "recipes" / "guidance" / "task_choice.py")


def test_a_tenth_of_the_tasks_can_be_learned_from():
    tasks = RECIPE.ThreeSources().load()
    assert Counter(task.source for task in tasks) == {
        "trivial": 180,
        "learnable": 40,
        "impossible": 180,
    }
    counts = {
        name: {len(task.columns["terms"]) for task in tasks if task.source == name}
        for name in RECIPE.SOURCES
    }
    assert counts == {"trivial": {3}, "learnable": {5, 6}, "impossible": {10}}


def test_curricula_are_all_that_differs_in_three_arms():
    for name in ("learnable only", "DUMP", "MMR1"):
        method = RECIPE.METHODS[name]
        assert method != RECIPE.GRPO
        assert method.replace(curriculum=ShuffledTasks()) == RECIPE.GRPO


def test_only_the_upper_bound_is_given_the_source():
    sources = {
        name: method.curriculum.sources
        for name, method in RECIPE.METHODS.items()
        if isinstance(method.curriculum, SourceBandit)
    }
    assert sources == {"learnable only": ("learnable",), "DUMP": ()}
