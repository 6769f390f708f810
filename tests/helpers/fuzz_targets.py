"""Parsers of untrusted text by group, the errors that each may raise, and the text to fuzz them."""

import json
from importlib.util import find_spec
from typing import Any

import hypothesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from grupo.catalogue.parse import parse_method
from grupo.cli.build_experiment import _seeds
from grupo.cli.fields import split_arguments
from grupo.compare.budget import parse_budget
from grupo.compare.update_budget import parse_update_rule
from grupo.config.overrides import apply_overrides
from grupo.core.extract_answer import AfterMarker, InsideTag, last_boxed
from grupo.core.serialization import from_data
from grupo.envs.tools.formats import FORMATS
from grupo.envs.tools.tool_calls import ToolCallError, tool_spec
from grupo.storage import strict_json
from grupo.tasks import parse_task_source
from grupo.tasks.columns import Columns, task_from_row
from grupo.tasks.tables.jsonl import _parse_object
from grupo.toy.quickstart import RECIPE
from grupo.util.errors import ConfigError
from tests.helpers.fuzzing import media_files, model_files, recipe_files, server_replies
from tests.helpers.fuzzing.target import Target, checked_parse
from tests.helpers.malformed_values import BAD_JSON, FIELDS


def texts(*fragments: str) -> st.SearchStrategy[str]:
    """Texts that consist of fragments of valid ones and of arbitrary characters."""
    common = ("(", ")", "[", "]", "{", "}", ",", "=", ":", ".", "'", '"', "-", "*", "\\", " ", "\n")
    odd = ("\0", "\ud800", "\x1b[2J", "\u0663", "9" * 400, "1e999", "nan", "0x1", "1_0", "None")
    pieces = st.sampled_from((*fragments, *common, *odd)) | st.text(max_size=3)
    return st.lists(pieces, max_size=12).map("".join)


CODE = texts(*("Cosine(1e-5, 0)", "Linear", "start=1", "Lora(", "targets=", "Updates", "0.5", "3"))
JSON_TEXT = texts(
    *('{"prompt": ', '"a"', '"1 + 1"', "null", "true", "0.5", '{"a": ', '{"$float": "NaN"}', "NaN"),
    *('"\\ud800"', '"role"', '"content"', '{"name": "add", "arguments": {"a": ', "1", "}}"),
)
COMPONENTS = (
    *("grupo.recipe:Recipe", "grupo.core.schedules:Linear", "grupo.envs:SingleTurn", "math:pi"),
    *("grupo.method:Method", "grupo.algo.minibatches:Updates", "grupo.tasks:ReasoningGym", ":", ""),
    *("grupo.models.causal_lm:CausalLM", "builtins:exec", "no.such:name", "grupo.recipe:nothing"),
)
KEYS = st.sampled_from(
    ("start", "end", "family", "size", "settings", "model", "lora", "tuple", "path", "function", "")
)
LEAVES = (
    st.sampled_from(BAD_JSON)
    | st.sampled_from(COMPONENTS)
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
)


def _trees(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(KEYS, children, max_size=4)
    components = st.tuples(st.sampled_from(COMPONENTS), objects)
    return (
        st.lists(children, max_size=3)
        | objects
        | st.builds(lambda values: {"tuple": values}, st.lists(children, max_size=3))
        | components.map(lambda pair: {"component": pair[0], **pair[1]})
    )


TREES = st.recursive(LEAVES, _trees, max_leaves=12)


def _parse_row(line: bytes) -> object:
    return task_from_row(_parse_object(line, "line 1"), Columns(), "line 1")


def _parse_strict(text: str) -> None:
    """What strict JSON accepts is read as by Python's parser, and written back unchanged."""
    value = strict_json.from_json(text)
    assert value == json.loads(text)
    assert strict_json.from_json(json.dumps(value)) == value
    strict_json.from_exact_json(text)


def _add(a: int, b: float = 0.5, c: str = "", d: bool = False) -> float:
    """A tool with an argument of each type."""
    return a + b


def _parse_answer(text: str) -> None:
    spec = tool_spec(_add)
    for call in [call for form in FORMATS.values() for call in form.parse(text)]:
        assert 0 <= call.start < call.end <= len(text)
        if not call.error:
            spec.validate_arguments(call.arguments)
    for extract in (last_boxed, AfterMarker("####"), InsideTag("answer")):
        assert isinstance(extract(text), str | None)


def _split_text(text: str) -> object:
    return split_arguments(text.split(" "))


COLUMNS = st.sampled_from(("prompt", "answer", "source", "reward_model", "a"))
PROMPTS = st.fixed_dictionaries({"prompt": st.text(max_size=5)})
ROW = st.builds(lambda row, prompt: row | prompt, st.dictionaries(COLUMNS, TREES), PROMPTS)
ARGUMENT_PARSERS = (_split_text, _seeds, parse_budget, parse_update_rule)
ARGUMENT_PIECES = ("--steps", "--policy.model", "3,5", "Updates(2)", "shared", "tokens=", "_", "--")
TARGETS = {
    "overrides": Target(
        lambda pair: apply_overrides(RECIPE, [(pair[0].replace("-", "_"), pair[1])]),
        st.tuples(st.sampled_from(FIELDS), CODE),
    ),
    "tasks": Target(
        parse_task_source,
        st.sampled_from(("a.jsonl", "rg:gcd", "rg:chain_sum(max_terms=3, size=9)*2+rg:gcd"))
        | texts(*("rg:", "chain_sum", "gcd", "(max_terms=3)", "size=9", "a.jsonl", "math:pi", "+")),
    ),
    "methods": Target(
        parse_method,
        st.sampled_from(("grpo", "grpo(clip_eps=0.1)", "dapo(max_length=64, overlong_buffer=16)"))
        | texts(*("grpo", "(clip_eps=0.1)", "group_size=4", "dapo", "a.py:", "**")),
    ),
    "recipes": Target(from_data, TREES),
    "rows": Target(
        _parse_row,
        (JSON_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
        | st.binary(max_size=40)
        | ROW.map(lambda row: json.dumps(row).encode())
        | st.dictionaries(COLUMNS, TREES).map(lambda row: json.dumps(row).encode()),
    ),
    "strict JSON": Target(
        _parse_strict, JSON_TEXT | TREES.map(json.dumps), (ValueError, ConfigError)
    ),
    "answers": Target(
        _parse_answer,
        texts(
            *("<tool_call>", "</tool_call>", '{"name": "add", "arguments": {', '"a": 1', "}}"),
            *("\\boxed{", "}", "####", "<answer>", "</answer>", "null", "[[", "1" * 5000),
        ),
        (ToolCallError,),
    ),
    "arguments": Target(
        lambda pair: pair[0](pair[1]),
        st.tuples(st.sampled_from(ARGUMENT_PARSERS), texts(*ARGUMENT_PIECES)),
    ),
}
FILE_TARGETS = {
    "recipe files": recipe_files.RECIPE_FILES,
    "pipelines": recipe_files.PIPELINES,
    "stored pipelines": recipe_files.STORED_PIPELINES,
    "comparisons": recipe_files.COMPARISONS,
    "media": media_files.MEDIA,
    "Parquet": media_files.PARQUET,
    "tokenizers": model_files.TOKENIZERS,
    "quantization": model_files.QUANTIZATION,
    "judges": server_replies.JUDGES,
    "OpenEnv": server_replies.OPENENV,
    **({"MCP": server_replies.MCP} if find_spec("mcp") and find_spec("jsonschema_rs") else {}),
}


def fuzz(target: Target, count: int, seed: int) -> int:
    """Parse `count` examples; returns how many were accepted.

    Any other error than the target's fails, and so does an example without an end.
    """
    accepted = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    @given(target.inputs)
    def parse(example):
        nonlocal accepted
        accepted += checked_parse(target, example)

    parse()
    return accepted
