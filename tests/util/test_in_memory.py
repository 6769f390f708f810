"""Objects that no file holds: their descriptions in recipe.json, and their placeholders."""

import functools
import json

import pytest

from grupo.core.component import component
from grupo.core.non_json import describe_non_json, missing_object
from grupo.core.ranges import PositiveFloat
from grupo.core.serialization import from_data, holds_descriptions, objects_in_memory, to_data
from grupo.util.errors import ConfigError
from grupo.util.in_memory import InMemory, MissingObject


@component
class Scale:
    """A component with a function and a number in a range."""

    function: object = None
    factor: PositiveFloat = 1.0


class Scorer:
    def __call__(self, task, rollouts):
        return [0.0 for _ in rollouts]

    def score(self, task, rollout):
        return 0.0


class Table(InMemory):
    description = "a table"
    remedy = "save it"


def local_function():
    def reward(task, rollout):
        return 0.0

    return reward


def written(value):
    return json.loads(json.dumps(to_data(Scale(value), on_non_json=describe_non_json)))


def script_function(name="reward"):
    """A function as of the script that runs."""
    names = {"__name__": "__main__"}
    exec(compile(f"def {name}(task, rollout):\n    return 0.0\n", "train.py", "exec"), names)
    return names[name]


def cell_function():
    names = {"__name__": "__main__"}
    exec(compile("def reward(): pass", "/tmp/ipykernel_12/34.py", "exec"), names)
    return names["reward"]


@pytest.mark.parametrize(
    ("value", "description", "remedy"),
    [
        (
            script_function(),
            "function reward in train.py, line 1",
            "move reward to a file of its own and import it",
        ),
        (
            cell_function(),
            "function reward in the notebook",
            "move reward to a file of its own and import it",
        ),
        (
            local_function(),
            "function local_function.<locals>.reward in test_in_memory.py, line 38",
            "write reward at the top level of a file and import it",
        ),
        (
            functools.partial(max, 1),
            "an object of the class partial",
            "write a function at the top level of a file that uses the partial, and import it",
        ),
        (
            Scorer().score,
            "method Scorer.score",
            "move the class Scorer to a file of its own and import it",
        ),
        (Table(), "a table", "save it"),
    ],
)
def test_objects_in_memory_are_written_as_a_description_with_a_remedy(value, description, remedy):
    data = written(value)
    assert data["function"] == {"in_memory": description, "remedy": remedy}
    assert from_data(data).function == MissingObject(description, remedy)


def test_lambdas_are_named_by_their_line():
    description = missing_object(lambda: 0).description
    assert description.startswith("lambda in test_in_memory.py, line ")


def test_components_of_a_class_without_an_address_are_written_as_their_code():
    @component
    class Local:
        factor: float = 0.5

    missing = missing_object(Local(0.25))
    assert missing.description == "Local(factor=0.25)"
    assert missing.remedy.startswith("move the class ")
    assert written(Local())["function"]["in_memory"] == "Local(factor=0.5)"


def test_a_recipe_that_was_read_is_written_as_before():
    data = written(script_function())
    assert to_data(from_data(data), on_non_json=describe_non_json) == data


def test_objects_in_memory_are_found_with_their_place():
    recipe = Scale((Scale(script_function()), Scale(3)))
    assert list(objects_in_memory(recipe)) == ["recipe.function[0].function"]
    assert objects_in_memory(from_data(written(local_function())))
    assert objects_in_memory(Scale(len)) == {}


def test_descriptions_are_found_in_json_data():
    assert holds_descriptions(written(script_function()))
    assert not holds_descriptions(written(len))
    assert not holds_descriptions({"component": "a:B", "in_memory": "a field of this name"})


@pytest.mark.parametrize("value", [script_function(), Table(), Scorer()])
def test_without_leave_objects_in_memory_are_refused_with_their_place(value):
    with pytest.raises(ConfigError, match=r"^recipe\.function: "):
        to_data(Scale(value))


@pytest.mark.parametrize("value", [[1], {1}, b"bytes"])
def test_plain_data_that_a_tuple_can_hold_is_refused_rather_than_described(value):
    with pytest.raises(ConfigError, match=r"recipe\.function: .* which recipe.json cannot hold"):
        to_data(Scale(value), on_non_json=describe_non_json)


@pytest.mark.parametrize(
    "use", [lambda x: x(1, key=2), lambda x: x.load(), lambda x: x.max_new_tokens + 1]
)
def test_any_use_of_a_missing_object_raises_and_says_what_to_do(use):
    with pytest.raises(ConfigError, match=r"a table, which existed only in .* run, save it\.$"):
        use(MissingObject("a table", "save it"))


def test_missing_objects_fit_fields_of_any_type():
    assert Scale(factor=MissingObject("a schedule", "")).factor == MissingObject("a schedule", "")


def test_forged_descriptions_are_refused():
    for data in ({"in_memory": 3, "remedy": ""}, {"in_memory": "a"}):
        with pytest.raises(ConfigError, match=r"in a recipe\. Allowed: a str"):
            from_data(data)
