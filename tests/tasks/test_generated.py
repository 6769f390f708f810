"""Generated tasks: reasoning-gym, mixtures and functions."""

from collections import Counter

import pytest
import reasoning_gym

from grupo.tasks import FromFunction, ReasoningGym, TaskMixture
from grupo.util.errors import ConfigError


def test_a_task_depends_on_its_index_only():
    forward = ReasoningGym("chain_sum", size=20, seed=3).load()
    backward = ReasoningGym("chain_sum", size=20, seed=3).load()
    assert [backward[i] for i in reversed(range(20))][::-1] == [forward[i] for i in range(20)]


def test_tasks_equal_those_of_reasoning_gym():
    entry = reasoning_gym.create_dataset("gcd", size=5, seed=7)[4]
    task = ReasoningGym("gcd", size=5, seed=7).load()[-1]
    assert (task.prompt, task.reference_answer) == (entry["question"], entry["answer"])
    assert task.source == "gcd"
    assert task.columns["entry"] == entry


def test_settings_and_template_apply_to_the_tasks():
    source = ReasoningGym(
        "chain_sum",
        size=5,
        settings=(("min_terms", 2), ("max_terms", 2), ("max_digits", 1)),
        template='{"task": {question}}',
    )
    for task in source.load():
        left, _, right = task.columns["entry"]["metadata"]["expression"].split()
        assert len(left) == len(right) == 1
        assert task.prompt == f'{{"task": {task.columns["entry"]["question"]}}}'


def test_indices_out_of_range_are_an_error_and_slices_are_lists():
    tasks = ReasoningGym("gcd", size=3).load()
    assert tasks[1:] == [tasks[1], tasks[2]]
    with pytest.raises(IndexError):
        tasks[3]


def test_unknown_families_settings_and_values_are_config_errors():
    with pytest.raises(ConfigError, match=r"no family 'chain_sun'. Did you mean 'chain_sum'"):
        ReasoningGym("chain_sun")
    with pytest.raises(ConfigError, match=r"no setting 'min_term'. Did you mean 'min_terms'"):
        ReasoningGym("chain_sum", settings=(("min_term", 2),))
    with pytest.raises(
        ConfigError, match=r"chain_sum does not accept .*max_terms must be >= min_terms"
    ):
        ReasoningGym("chain_sum", settings=(("min_terms", 3), ("max_terms", 2)))
    with pytest.raises(ConfigError, match=r"chain_sum does not accept .*size must be positive"):
        ReasoningGym("chain_sum", size=0)
    with pytest.raises(ConfigError, match=r"has no {question}"):
        ReasoningGym("chain_sum", template="Answer!")


def test_a_mixture_follows_its_weights_and_its_seed():
    sources = ((ReasoningGym("chain_sum", size=900), 3.0), (ReasoningGym("gcd", size=900), 1.0))
    names = [task.source for task in TaskMixture(sources, size=400).load()]
    # 400 draws of probability 3/4: 300 expected, standard deviation sqrt(400 * 3/16) = 8.7
    assert 265 < Counter(names)["chain_sum"] < 335
    assert names == [task.source for task in TaskMixture(sources, size=400).load()]
    assert names != [task.source for task in TaskMixture(sources, size=400, seed=1).load()]


def test_a_mixture_uses_up_a_source_before_repeating_it():
    sources = ((ReasoningGym("gcd", size=4), 1.0),)
    keys = [task.key for task in TaskMixture(sources, size=8).load()]
    assert keys[:4] == keys[4:] == [task.key for task in ReasoningGym("gcd", size=4).load()]


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_weights_are_config_errors(weight):
    with pytest.raises(ConfigError, match=r"TaskMixture.sources: "):
        TaskMixture(((ReasoningGym("gcd"), weight),))
    with pytest.raises(ConfigError, match=r"TaskMixture.sources: "):
        TaskMixture(())


def test_functions_without_tasks_are_config_errors():
    with pytest.raises(ConfigError, match=r"returned no tasks"):
        FromFunction(lambda: []).load()
    with pytest.raises(ConfigError, match=r"item 2 is a int. Allowed: Task, mapping"):
        FromFunction(lambda: iter([{"prompt": "a"}, 3])).load()
