"""The samplers of methods against independent references in plain Python.

Compared for each script: the trained rollouts in their order, the prompt that each is trained
behind, which parts are trained and sampled, rewards, reward terms that the sampler adds, and what
the policy was asked to generate.
"""

import ast
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tests.reference.rollouts_plain as references
from grupo.catalogue.entries import methods
from grupo.catalogue.parse import parse_method
from grupo.core.interfaces import single_response
from grupo.core.schedules import resolve_schedules
from grupo.methods.aepo import aepo
from grupo.rollouts.samplers import GroupSampler
from grupo.training.update.collate import collate
from tests.reference.rollouts.comparison import Script, assert_equals_reference, sampled_group
from tests.reference.rollouts.scripted import rows_of
from tests.reference.rollouts.scripts import SCRIPTS, STATED_DEVIATIONS
from tests.reference.rollouts.scripts_hints import is_right
from tests.reference.rollouts.scripts_splits import Q, some_right
from tests.reference.rollouts_plain.record import REFERENCES, Policy
from tests.reference.rollouts_plain.refinement import IF_RIGHT, IF_WRONG, TRIGGERS

FILES = sorted(Path(references.__path__[0]).glob("*.py"))
WITH_GIVEN_ANSWERS = [
    *("ahpo", "amft", "ampo", "chord_mu", "chord_phi", "cog_rethinker", "expo_self_explanation"),
    *("grao", "hpt", "luffy", "srft"),
]


def parameters(names):
    """A parameter for each script of these methods."""
    return [
        pytest.param(name, script, id=f"{name}: {script.name}")
        for name in names
        for script in SCRIPTS[name]
    ]


@pytest.mark.parametrize(("name", "script"), parameters(SCRIPTS))
def test_a_sampler_equals_its_reference(name, script):
    if (name, script.name) in STATED_DEVIATIONS:
        pytest.skip(STATED_DEVIATIONS[name, script.name])
    assert_equals_reference(name, script)


@pytest.mark.parametrize(("name", "label"), STATED_DEVIATIONS)
def test_a_deviation_that_a_record_states_is_there(name, label):
    (script,) = [script for script in SCRIPTS[name] if script.name == label]
    with pytest.raises(AssertionError):
        assert_equals_reference(name, script)


def test_every_method_with_a_sampler_of_its_own_has_a_reference_and_two_scripts():
    own = set()
    for entry in methods():
        sampler = parse_method(entry.example).sampler
        is_plain = type(sampler) is GroupSampler and sampler.turn_strategy is single_response
        if not is_plain:
            own.add(entry.key)
    assert own <= set(SCRIPTS)
    assert set(SCRIPTS) == set(REFERENCES)
    assert [name for name, scripts in SCRIPTS.items() if len(scripts) < 2] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_references_import_neither_grupo_nor_torch(file):
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    others = [name for name in names if name.split(".")[0] not in sys.stdlib_module_names]
    assert [name for name in others if not name.startswith("tests.reference.rollouts_plain")] == []


def advantages(method, group):
    """Advantage of each action of the group's rollouts."""
    batch = collate([group], lambda rows: {})
    return batch.with_advantage(method.advantage).advantage


@pytest.mark.parametrize(("name", "script"), parameters(WITH_GIVEN_ANSWERS))
def test_the_reward_of_a_given_answer_counts_in_the_baseline_as_the_reference_states(name, script):
    terms = {"terms": lambda text: {"correct": script.reward(text)}}
    group = sampled_group(replace(script, **terms), Policy(script.answers))
    run = REFERENCES[name].run
    expected = run(script.question, Policy(script.answers), script.reward, **script.settings)
    method = resolve_schedules(script.method, script.progress)
    before = advantages(method, group)
    for i, reference in enumerate(expected):
        if any(part.sampled for part in reference.parts):
            continue
        rollouts = list(group.rollouts)
        rollouts[i] = replace(rollouts[i], reward=rollouts[i].reward + 1)
        after = advantages(method, replace(group, rollouts=tuple(rollouts)))
        sampled = [j for j, row in enumerate(expected) if any(part.sampled for part in row.parts)]
        counts = not torch.allclose(before[sampled], after[sampled])
        assert counts == reference.baseline


@pytest.mark.parametrize(
    ("entropies", "temperature"), [([], 1.2), ([0.5], 1.2), ([0.1, 0.9], 0.8), ([0.9, 0.1], 1.2)]
)
def test_tempered_rollouts_of_aepo_are_hot_while_entropy_is_low(entropies, temperature):
    # the target is 0.5
    script = Script("", aepo(3, 2), Q, some_right, is_right, metrics={"policy/entropy": entropies})
    sampled_group(script, Policy(script.answers))
    assert sorted(script.model.temperatures) == sorted([1.0] * 3 + [temperature] * 2)


def test_feedback_of_thinktuning_has_the_text_and_reward_of_the_reference():
    # apart from the disputed mask
    (script,) = [s for s in SCRIPTS["thinktuning"] if s.name == "some feedback"]
    policy, expected_policy = Policy(script.answers), Policy(script.answers)
    rows = rows_of(sampled_group(script, policy))
    arguments = {**script.settings, **script.read(policy.calls, rows)}
    expected = REFERENCES["thinktuning"].run(Q, expected_policy, script.reward, **arguments)
    assert [(r.prompt, r.text, r.reward) for r in rows] == [
        (r.prompt, r.text, r.reward) for r in expected
    ]
    assert sorted(policy.calls) == sorted(expected_policy.calls)
    assert 0 < sum(r.reward for r in rows) < len(rows)


def drawn(name, label, streams):
    """The draws of a sampler in so many streams, as the scripts read it."""
    (script,) = [s for s in SCRIPTS[name] if s.name == label]
    for key in range(streams):
        policy = Policy(script.answers)
        rows = rows_of(sampled_group(replace(script, key=key), policy))
        yield script.read(policy.calls, rows)


def shares(values):
    """The share of each value."""
    values = list(values)
    return {value: count / len(values) for value, count in Counter(values).items()}


def test_draws_of_vl_rethinker_have_the_probabilities_of_the_release():
    draws = [d for x in drawn("vl_rethinker", "wrong, stream 0", 100) for d in x["draws"]]
    assert shares(d.goes_on for d in draws)[True] == pytest.approx(0.65, abs=0.05)
    going = [d for d in draws if d.goes_on]
    # of the six answers, two have no place for a cut
    assert shares(d.is_cut for d in going)[True] == pytest.approx(0.5 * 4 / 6, abs=0.06)
    triggers = shares(d.trigger for d in going)
    specific = triggers.pop(IF_RIGHT) + triggers.pop(IF_WRONG)
    assert specific == pytest.approx(0.5, abs=0.06)
    assert triggers == pytest.approx({TRIGGERS[0]: 0.2, TRIGGERS[1]: 0.3}, abs=0.06)


def test_draws_of_groups_and_starts_have_the_probabilities_of_the_papers():
    workspaces = shares(x["has_workspace"] for x in drawn("pdr", "stream 0", 100))
    assert workspaces[True] == pytest.approx(0.5, abs=0.12)
    starts = shares(d for x in drawn("adaptthink", "stream 0", 50) for d in x["draws"])
    assert starts[0] == pytest.approx(0.5, abs=0.1)
    first = shares(x["first"] for x in drawn("treepo", "all paths are deep", 70))
    assert sorted(first) == [2, 3, 4, 5, 6, 7, 8]
