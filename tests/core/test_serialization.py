"""Pieces as plain data and back, whichever piece of the package it is."""

import functools
import importlib
import json
import pkgutil
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import grupo
from grupo.algo.advantages import Center
from grupo.algo.losses import Clip
from grupo.catalogue import methods
from grupo.core import group_ops
from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.schedules import Linear
from grupo.core.serialization import from_data, to_data
from grupo.envs.games import FrozenLake
from grupo.envs.tools import Python
from grupo.models.causal_lm import CausalLM
from grupo.rewards import ExactMatch
from grupo.rollouts.curricula import ShuffledTasks
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import DatasetTasks, ReasoningGym
from grupo.toy.quickstart import RECIPE

ON_DISK = "grupo.storage"  # its pieces are never part of a recipe


def judge(task, rollout):
    return 0.0


# for the fields that have no default, by name
VALUES: Mapping[str, Any] = {
    "steps": (Center(), Center(group_ops.median)),
    "credit": Center(),
    "weights": (("right", 0.5), ("short", -1.0)),
    "by": judge,
    "keep": judge,
    "function": judge,
    "solve": judge,
    "inner": ShuffledTasks(),
    "left": Clip(),
    "right": Clip(clip_high=Linear(0.2, 0.3)),
    "loss": Clip(),
    "factor": Linear(0.1, 0.0),
    "then": Linear(1e-3, 0.0),
    "share": 0.1,
    "name": "right",
    "reward": ExactMatch(),
    "tasks": ReasoningGym("chain_sum", settings=(("max_terms", 3),)),
    "held_out": ReasoningGym("chain_sum", 10),
    "sources": ((DatasetTasks("a.jsonl"), 2.0), (DatasetTasks("b.jsonl"), 1.0)),
    "family": "chain_sum",
    "pattern": "(a)",
    "policy": CausalLM("model"),
    "env": RECIPE.env,
    "rewards": RECIPE.env.rewards,
    "checked": ("laws",),
    "world": FrozenLake(),
    "tools": (Python(),),
}
PLAIN = {int: 3, float: 0.25, str: "text"}


def modules():
    for found in pkgutil.walk_packages(grupo.__path__, "grupo."):
        if not found.name.startswith(ON_DISK) and not found.name.endswith(("__main__", "_worker")):
            yield importlib.import_module(found.name)


def is_of_a_recipe(kind: object) -> bool:
    """Was it made by `piece`? That prints in its own way, unlike other dataclasses."""
    made = isinstance(kind, type) and is_dataclass(kind)
    return made and not vars(kind)["__dataclass_params__"].repr


PIECES = {
    kind
    for module in modules()
    for kind in vars(module).values()
    if is_of_a_recipe(kind) and kind.__module__ == module.__name__
}


def example(kind: type, place: str) -> Any:
    """A piece of this class, its fields without a default filled in."""
    assert is_dataclass(kind)
    values = {**VALUES, "place": place}
    if kind.__name__ == "UntilInformative":
        values["inner"] = GroupSampler(2)
    needed = [f for f in fields(kind) if f.init and f.default is f.default_factory is MISSING]
    return kind(**{f.name: values.get(f.name, PLAIN.get(f.type)) for f in needed})


def again(value: Any) -> Any:
    return from_data(json.loads(json.dumps(to_data(value))))


@pytest.mark.parametrize("kind", sorted(PIECES, key=lambda kind: f"{kind.__module__}.{kind}"))
def test_every_piece_comes_back_from_plain_data(kind, tmp_path):
    (tmp_path / "judge.py").write_text("def judge(task, rollout):\n    return 0.0\n")
    made = example(kind, f"{tmp_path / 'judge.py'}:judge")
    assert again(made) == made
    assert repr(again(made)) == repr(made)


def test_the_pieces_are_those_of_the_package():
    assert len(PIECES) > 50
    assert {Clip, GroupSampler, CausalLM, DatasetTasks, Linear, type(RECIPE)} <= PIECES


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_method_comes_back_from_plain_data(entry):
    assert again(entry.method) == entry.method


def test_the_quickstarts_recipe_comes_back_from_plain_data():
    assert again(RECIPE) == RECIPE


@component
class Holder:
    """Of anything, under names that plain data uses itself."""

    tuple: Any = None
    path: Any = None
    function: Any = None


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        float("inf"),
        -3,
        True,
        None,
        "",
        (),
        ((1,), ("a", (None,))),
        Path("a/b"),
        group_ops.mean,
    ],
)
def test_values_come_back_as_what_they_were(value):
    assert again(Holder(path=value)) == Holder(path=value)


def test_what_stays_is_not_mistaken_for_what_it_is_called():
    assert again(Holder(tuple="function", path=("piece",))) == Holder(
        tuple="function", path=("piece",)
    )


def square(x):
    return x * x


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Holder(path=[1]), r"recipe\.path: \[1\] is a list, which a run's folder cannot hold"),
        (Holder(path={"a": 1}), r"recipe\.path: \{'a': 1\} is a dict"),
        (Holder(path=(0, float("nan"))), r"recipe\.path\[1\]: nan\. Allowed: a number"),
        (Holder(path=lambda x: x), r"recipe\.path: <lambda> has no address: move it to the top"),
        (Holder(path=functools.partial(square, 2)), r"recipe\.path: .*partial.* has no address"),
        (Holder(path="".join), r"recipe\.path: .* has no address"),
        (Holder(path=b"bytes"), r"recipe\.path: b'bytes' is a bytes"),
    ],
)
def test_what_cannot_be_written_down_is_refused_by_its_place(value, said):
    with pytest.raises(ConfigError, match=said):
        to_data(value)


@component
class Misnamed:
    piece: int = 0


def test_a_field_that_plain_data_could_not_tell_apart_is_refused():
    with pytest.raises(ConfigError, match=r"recipe\.path\.piece: the name is taken"):
        to_data(Holder(path=Misnamed()))


def test_a_bound_method_is_not_written_as_the_function_behind_it():
    with pytest.raises(ConfigError, match="something else by now"):
        to_data(Holder(function=GroupSampler(2).__call__))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"piece": "os:system", "command": "true"}, "is no piece: a recipe is made of pieces"),
        ({"piece": "grupo.algo.divergences:k3", "logp": 1}, "is no piece"),
        (
            {"piece": "grupo.algo.losses:Clip", "hgh": 1},
            "Clip has no field 'hgh'. Did you mean 'high'",
        ),
        ({"piece": "grupo.core.schedules:Linear", "start": 1}, "Linear lacks its field 'end'"),
        (
            {"piece": "grupo.algo.losses:Clap"},
            "'grupo.algo.losses' has no 'Clap'. Did you mean 'Clip'",
        ),
        ({"list": []}, "is nothing that a recipe is written as"),
    ],
)
def test_data_that_nobody_wrote_is_refused_and_nothing_of_it_is_called(data, said):
    with pytest.raises(ConfigError, match=said):
        from_data(data)
