"""Every component of the package as JSON data, and back."""

import functools
import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import grupo
from grupo.algo.advantages import Center
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.catalogue.entries import methods
from grupo.core import group_ops
from grupo.core.aux_heads import DeepHead
from grupo.core.component import component
from grupo.core.extract_answer import final_answer
from grupo.core.field_types import is_describable, matches_type
from grupo.core.schedules import Linear
from grupo.core.serialization import from_data, to_data
from grupo.envs import PointsInSquare
from grupo.envs.games import FrozenLake
from grupo.envs.random_opponent import RandomOpponent
from grupo.envs.tools import Python
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import Stage
from grupo.rewards import ChatEndpoint, ExactMatch, TagFormat
from grupo.rewards.judges import RubricItem, YesNo
from grupo.rollouts.curricula import ShuffledTasks
from grupo.rollouts.samplers import GroupSampler, HintColumn, RescueAttempt
from grupo.storage import strict_json
from grupo.tasks import Between, DatasetTasks, ReasoningGym
from grupo.tasks.labelled_pictures import LabelledDigits
from grupo.tasks.picture_puzzles import DigitPictures
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError

STORAGE = "grupo.storage"  # its components are never part of a recipe


def zero_reward(task, rollout):
    return 0.0


# values of fields without a default, by name
VALUES: Mapping[str, Any] = {
    "estimators": (Center(), Center(group_ops.median)),
    "estimator": Center(),
    "first": Center(),
    "later": Center(),
    "kind": "paper",
    "head": DeepHead("score"),
    "second": Center(group_ops.median),
    "weights": (("right", 0.5), ("short", -1.0)),
    "labels": zero_reward,
    "score": zero_reward,
    "demonstrator": zero_reward,
    "keep": zero_reward,
    "function": zero_reward,
    "solve": zero_reward,
    "synthesize": zero_reward,
    "pictures": DigitPictures(),
    "labelled": LabelledDigits(),
    "inner": ShuffledTasks(),
    "left": Clip(),
    "right": Clip(clip_high=Linear(0.2, 0.3)),
    "loss": Clip(),
    "factor": Linear(0.1, 0.0),
    "schedule": Linear(1e-3, 0.0),
    "surrogate": Clip(),
    "policy_loss": Clip(),
    "demo_loss": Clip(),
    "plan": Updates(2),
    "passes": 2.0,
    "name": "right",
    "fn": ExactMatch(),
    "format": TagFormat(),
    "calls": ExactMatch(),
    "answer": ExactMatch(),
    "correct": ExactMatch(),
    "tasks": ReasoningGym("chain_sum", settings=(("max_terms", 3),)),
    "eval_tasks": ReasoningGym("chain_sum", 10),
    "quantile_levels": (0.2, 0.8),
    "sources": ((DatasetTasks("a.jsonl"), 2.0), (DatasetTasks("b.jsonl"), 1.0)),
    "family": "chain_sum",
    "address": "http://localhost:8000",
    "pattern": "(a)",
    "policy": CausalLM("model"),
    "problem": PointsInSquare(2),
    "env": RECIPE.env,
    "rewards": RECIPE.env.rewards,
    "env_factory": FrozenLake(),
    "main_policy": CausalLM("model"),
    "tools": (Python(),),
    "opponent": RandomOpponent(),
    "on_context_loss": Clip(),
    "off_context_loss": Clip(),
    "within": Center(),
    "model": ChatEndpoint("judge"),
    "low": 1.0,
    "high": 2.0,
    "prompt": "{completion}",
    "parse": YesNo("Right:"),
    "items": (RubricItem("brief", "It is brief.", 0.5),),
    "reward": ExactMatch(),
    "source": DatasetTasks("a.jsonl"),
    "selection": Between("pass_rate", 0.2, 0.6),
    "shares": (("sft", 0.25), ("dpo", 0.75)),
    "build_prompts": HintColumn(),
    "attempts": (RescueAttempt(HintColumn()),),
    "stages": (Stage("sft", RECIPE),),
    "recipe": RECIPE,
}
SIMPLE_VALUES = (3, 0.25, "text", True, final_answer)


def modules():
    for module in pkgutil.walk_packages(grupo.__path__, "grupo."):
        if not module.name.startswith(STORAGE) and not module.name.endswith(
            ("__main__", "_worker")
        ):
            yield importlib.import_module(module.name)


def is_component_class(cls: object) -> bool:
    """True for classes with `@component`, which have a `__repr__` of their own."""
    params = vars(cls).get("__dataclass_params__") if isinstance(cls, type) else None
    return params is not None and not params.repr


COMPONENTS = {
    cls
    for module in modules()
    for cls in vars(module).values()
    if is_component_class(cls) and cls.__module__ == module.__name__
}


def example(cls: type, import_path: str) -> Any:
    """A component of a class, with values for its fields without a default."""
    assert is_dataclass(cls)
    values = {**VALUES, "import_path": import_path}
    if cls.__name__ == "ResampleUntilInformative":
        values["inner"] = GroupSampler(2)
    required = [f for f in fields(cls) if f.init and f.default is f.default_factory is MISSING]
    hints = get_type_hints(cls)
    arguments = {}
    for f in required:
        hint = hints[f.name]
        value = values.get(f.name)
        is_usable = matches_type(value, hint) if is_describable(hint) else f.name in values
        arguments[f.name] = value if is_usable else value_of_type(hint, import_path)
    return cls(**arguments)


def value_of_type(hint: Any, import_path: str) -> Any:
    """A scalar, a function, a tuple or a component of a type."""
    if get_origin(hint) is Callable:
        return zero_reward
    if get_origin(hint) is tuple:
        return tuple(value_of_type(h, import_path) for h in get_args(hint) if h is not ...)
    if isinstance(hint, type) and is_dataclass(hint):
        return example(hint, import_path)
    return next(value for value in SIMPLE_VALUES if matches_type(value, hint))


def round_trip(value: Any) -> Any:
    return from_data(json.loads(json.dumps(to_data(value))))


@pytest.mark.parametrize("cls", sorted(COMPONENTS, key=lambda cls: f"{cls.__module__}.{cls}"))
def test_every_component_survives_a_round_trip(cls, tmp_path):
    (tmp_path / "rewards.py").write_text("def zero(task=None, rollout=None):\n    return 0.0\n")
    component = example(cls, f"{tmp_path / 'rewards.py'}:zero")
    assert round_trip(component) == component
    assert repr(round_trip(component)) == repr(component)


def test_all_components_of_the_package_are_collected():
    assert len(COMPONENTS) > 50
    assert {Clip, GroupSampler, CausalLM, DatasetTasks, Linear, type(RECIPE)} <= COMPONENTS


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_method_survives_a_round_trip(entry):
    assert round_trip(entry.method) == entry.method


def test_quickstart_recipe_survives_a_round_trip():
    assert round_trip(RECIPE) == RECIPE


@component
class Holder:
    """Any values, under names that the JSON data uses itself."""

    tuple: Any = None
    path: Any = None
    function: Any = None


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        float("inf"),
        float("-inf"),
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
def test_values_survive_a_round_trip(value):
    assert round_trip(Holder(path=value)) == Holder(path=value)


def test_infinity_is_written_as_json_can_hold_it():
    text = json.dumps(to_data(Holder(path=(float("inf"), 1.0))), allow_nan=False)
    assert from_data(strict_json.from_json(text)) == Holder(path=(float("inf"), 1.0))


def test_strings_are_not_mistaken_for_the_names_of_json_data():
    assert round_trip(Holder(tuple="function", path=("component",))) == Holder(
        tuple="function", path=("component",)
    )


def test_mappings_of_names_are_written():
    value = Holder(path={"a": {"b": (1, 2.0)}, "c": False})
    assert round_trip(value) == value


def square(x):
    return x * x


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Holder(path=[1]), r"recipe\.path: \[1\] is a list, which recipe.json cannot hold"),
        (Holder(path={1: "a"}), r"recipe\.path: \{1: 'a'\} is a dict"),
        (Holder(path={"a": [1]}), r"recipe\.path\['a'\]: \[1\] is a list"),
        (Holder(path=(0, float("nan"))), r"recipe\.path\[1\]: nan\. Allowed: a number"),
        (Holder(path=lambda x: x), r"recipe\.path: <lambda> has no address\. Define it at the top"),
        (Holder(path=functools.partial(square, 2)), r"recipe\.path: .*partial.* has no address"),
        (Holder(path="".join), r"recipe\.path: .* has no address"),
        (Holder(path=b"bytes"), r"recipe\.path: b'bytes' is a bytes"),
    ],
)
def test_unserializable_values_are_rejected_with_their_place(value, message):
    with pytest.raises(ConfigError, match=message):
        to_data(value)


@component
class Misnamed:
    component: int = 0


def test_reserved_field_name_is_rejected():
    with pytest.raises(ConfigError, match=r"recipe\.path\.component: this field name is reserved"):
        to_data(Holder(path=Misnamed()))


def test_bound_method_is_not_written_as_its_function():
    with pytest.raises(ConfigError, match="is now another object"):
        to_data(Holder(function=GroupSampler(2).__call__))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"component": "os:system", "command": "true"},
            "is not a component; a recipe holds no other objects",
        ),
        ({"component": "grupo.algo.divergences:k3", "logp": 1}, "is not a component"),
        (
            {"component": "grupo.algo.losses:Clip", "clip_hgh": 1},
            "Clip has no field 'clip_hgh'. Did you mean 'clip_high'",
        ),
        ({"component": "grupo.core.schedules:Linear", "start": 1}, "Linear lacks its field 'end'"),
        (
            {"component": "grupo.algo.losses:Clap"},
            "'grupo.algo.losses' has no 'Clap'. Did you mean 'Clip'",
        ),
        ({"list": []}, "is not a value of a recipe"),
    ],
)
def test_forged_data_is_rejected_and_nothing_in_it_is_called(data, message):
    with pytest.raises(ConfigError, match=message):
        from_data(data)
