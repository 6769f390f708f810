"""GURU in small: every domain with its scorer, its curve, and its role in the table."""

import sys

import pytest

from grupo.core.types import Response, Rollout, Task
from grupo.envs.tools import Sandbox
from grupo.toy.tokenizers import word_tokenizer
from grupo.training.learner import Learner
from grupo.util.errors import ConfigError
from grupo.util.importing import load_module_file
from tests.helpers.paths import ROOT

FOLDER = ROOT / "recipes" / "small_claims"


@pytest.fixture
def guru(monkeypatch):
    """The script, whose neighbour it imports."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return load_module_file(FOLDER / "guru.py")


@pytest.fixture
def six(guru):
    return sys.modules["six_domains"]


@pytest.fixture
def sandbox():
    try:
        Sandbox().check()
    except ConfigError as error:
        pytest.skip(str(error))
    return Sandbox()


def answered(text):
    return Rollout((("?", Response((1,), (0.0,), text=text)),))


TRUTHS = {
    "math": ("7", r"ok \boxed{7.0}", 1.0, r"\boxed{8}", 0.0),
    "science": ("B", r"\boxed{B}", 1.0, r"\boxed{A}", 0.0),
    "logic": (
        {"rows": [["ann", "red", "cat"], ["bob", "blue", "dog"]]},
        '<answer>{"rows": [["ann", "red", "dog"], ["bob", "blue", "cat"]]}</answer>',
        4 / 6,
        '<answer>{"rows": []}</answer>',
        0.0,
    ),
    "simulation": (
        {"output": 4},
        '```json\n{"output": 4}\n```',
        1.0,
        '```json\n{"input": 4}\n```',
        0.0,
    ),
    "tabular": ("3|1", r"\boxed{1|3}", 1.0, r"\boxed{1}", 0.0),
}


@pytest.mark.parametrize("domain", TRUTHS)
def test_each_domain_has_its_scorer(domain, six):
    truth, good, reward, bad, low = TRUTHS[domain]
    task = Task("k", "?", truth, columns={"domain": domain})
    assert six.REWARD(task, [answered(good), answered(bad)]) == [pytest.approx(reward), low]
    assert six.REWARD.route(task).time_limit == 10.0  # seconds


def test_programs_pass_all_tests_in_the_sandbox_or_none(six, sandbox):
    task = six.code_task(0)
    right = str(task.columns["shown"])
    wrong = "```python\ndef f(x): return x + 99\n```"
    assert six.REWARD(task, [answered(right), answered(wrong)]) == [1.0, 0.0]


def test_outputs_of_simulated_programs_are_those_of_the_sandbox(six, sandbox):
    for task in six.domain_tasks("simulation")[:5]:
        output = sandbox.run(f"{task.columns['program']}; print(x)")
        assert int(output) == task.reference_answer["output"]


@pytest.mark.parametrize("domain", ["math", "science", "logic", "simulation", "tabular"])
def test_answers_that_tasks_show_are_right_and_have_no_twin_in_training(domain, six):
    tasks = six.domain_tasks(domain)
    assert [six.REWARD(t, [answered(str(t.columns["shown"]))])[0] for t in tasks[:30]] == [1.0] * 30
    training, held_out = six.training_tasks(domain), six.held_out_tasks(domain)
    assert not {t.prompt for t in training} & {t.prompt for t in held_out}
    assert min(len(training), len(held_out)) >= 40


def test_careful_demonstrations_are_right_and_hasty_ones_seldom(six):
    tasks = six.pretraining_tasks({"logic": 0.0, "tabular": 1.0}, size=1500)
    assert {task.source for task in tasks} == {"tabular"}
    assert len({task.key for task in tasks}) == 1500
    shown = [(text, task) for task in tasks for text in six.demonstrate(task)]

    def scores(way):
        return [six.REWARD(t, [answered(x)])[0] for x, t in shown if x.startswith(way)]

    careful, hasty = scores(six.CAREFUL), scores(six.HASTY)
    assert set(careful) == {1.0}
    assert len(careful) / len(shown) == pytest.approx(six.CAREFUL_SHARE, abs=0.04)
    assert six.RIGHT_BY_HASTE < sum(hasty) / len(hasty) < 0.5  # others' answers may be the same


def test_rl_on_several_domains_reports_a_curve_of_each(guru, six, tmp_path):
    texts = [str(t.prompt) for d in ("logic", "tabular") for t in six.domain_tasks(d)]
    guru.ARCHITECTURE.save_untrained(tmp_path, word_tokenizer(texts, six.TAGS))
    recipe = guru.recipe(tmp_path, ["logic", "tabular"], seed=0)
    learner = Learner(recipe.replace(prompts_per_step=6))
    metrics = learner.step().metrics
    assert {"reward/correct/logic", "reward/correct/tabular"} <= set(metrics)
    assert "reward/correct/math" not in metrics


def test_means_by_role_of_two_mixes(guru):
    rows = dict.fromkeys(guru.DOMAINS, 0.5)
    start = {"": rows, guru.ALL: {**rows, "math": 0.8}, **{d: dict(rows) for d in guru.DOMAINS}}
    after = {arm: dict(tested) for arm, tested in start.items()}
    after["math"]["math"] = 0.9  # in plenty in A, hardly there in B
    after["code"]["math"] = 0.7
    means = guru.role_means({"A": after, "B": start})
    assert means["no RL"] == {"plenty": 0.5, "hardly": 0.5}
    assert means["the domain"]["plenty"] == pytest.approx(0.5 + 0.4 / 6)
    assert means["another domain"]["plenty"] == pytest.approx(0.5 + 0.2 / 30)
    assert means["another domain"]["hardly"] == means["the domain"]["hardly"] == 0.5
    assert means[guru.ALL]["hardly"] == pytest.approx(0.5 + 0.3 / 6)
