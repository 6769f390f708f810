"""Recipe files, pipelines and manifests of comparisons with values of every type."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w
import yaml
from hypothesis import strategies as st

from grupo.compare.manifest import load_comparison
from grupo.config.recipe_files import load_recipe_file
from grupo.core.serialization import to_data
from grupo.pipeline.load import is_pipeline_file, load_pipeline_file
from grupo.pipeline.pipeline_file import read_pipeline
from grupo.storage.pipeline_dirs import pipeline_json, stage_folders
from grupo.toy.quickstart import RECIPE
from grupo.util.run_files import COMPARISON_FILE, PIPELINE_FILE
from tests.helpers.fuzzing.target import Target, mutated
from tests.helpers.fuzzing.values import changed, json_values
from tests.helpers.malformed_values import comparison_data

NOTATIONS = (
    *("Cosine(1e-5, 0)", "Lora(4)", "grpo(clip_eps=0.2)", "math:pi", "builtins:exec", "a.py:f"),
    *("Updates(2)", "ExactMatch()", "rg:gcd", "no.toml", "sft", "sft@1", "merge", "None", "(" * 60),
    {"type": "Lora"},
    {"type": ["Lora"]},
    {"type": {"a": 1}, "rank": 3},
    {"type": "Linear", "start": "1", "end": []},
)
RECIPE_DATA: dict[str, Any] = {
    "policy": {
        "model": "m",
        "lora": {"type": "Lora", "rank": 4},
        "sampling": {"temperature": 0.5, "top_k": 5},
        "stop_strings": ["a"],
    },
    "env": {"rewards": [{"name": "correct", "fn": "ExactMatch()", "weight": 1.0}]},
    "tasks": "t.jsonl",
    "method": {"type": "grpo", "clip_eps": 0.2, "sampler": {"group_size": 4}},
    "learning_rate": "Cosine(1e-5, 0)",
    "optimizer": {"type": "Adam", "beta1": 0.8},
    "max_steps": 5,
    "seed": 1,
    "early_stopping": {"max_seconds": 3.0},
}
PIPELINE_DATA: dict[str, Any] = {
    "rounds": 2,
    "stages": [
        {"name": "sft", "recipe": RECIPE_DATA},
        {"type": "SurveyStage", "name": "survey", "recipe": RECIPE_DATA, "attempts": 2},
        {"type": "ProgramStage", "name": "rules", "recipe": RECIPE_DATA, "items": 2},
        {"name": "rl", "recipe": RECIPE_DATA, "start": {"sft": 0.5, "survey": 0.5}},
        {"name": "more", "recipe": RECIPE_DATA, "start": "sft"},
        {"type": "ExportStage", "name": "out", "start": "rl"},
    ],
}
COMPARISON_DATA = comparison_data(to_data(RECIPE))
STAGE_DATA = {
    "component": "grupo.pipeline.stages:Stage",
    "name": "sft",
    "recipe": to_data(RECIPE),
}
STORED_PIPELINE: dict[str, Any] = {
    "component": "grupo.pipeline.pipeline:Pipeline",
    "stages": {"tuple": [STAGE_DATA]},
    "rounds": 1,
}
YAML_TAGS = (
    *(
        "!!timestamp x",
        "!!bool maybe",
        "!!int a",
        "!!float b",
        "!!binary =",
        "!!set {a}",
        "!!null a",
    ),
    *("!!python/object/apply:os.system [a]", "2001-99-99", "1:99:61", "0b", "0x", ".inf", "*a"),
    *(
        "!!omap [a: 1]",
        "!!pairs [a]",
        "&a [*a]",
        "<<: {a: 1}",
        "? [a]",
        "? {a: 1}\n: b",
        "9" * 5000,
    ),
    *("- " * 200, "[" * 200, "{a: " * 200, "2001-01-01 25:00:00 +99:99", "!a b", "%YAML 9.9", "\0"),
    *("1: 2", "true: 2", "~: 1", "- a", "a: b: c", "|\n a", "---\n---", "'", "\ud800", "\ufffe"),
)
TOML_PIECES = (
    *("a = 1", "[a]", "[[a]]", "[a.b]", "a = {b = 1}", "a = 1979-05-27T07:32:00Z", "a = 25:61:61"),
    *("a = [" + "[" * 200, "a = nan", "a = " + "9" * 5000, "a.b.c = 1", '"" = 1', "a = '''", "= 1"),
    *("a = 07:32:00", "a = 1e999", "a = 0xg", 'a = "\\ud800"', "a = 1\na = 2", "\0", "[[stages]]"),
)


class _WithoutAliases(yaml.SafeDumper):
    """Equal parts are written twice, as recipe files need it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _toml(data: Any) -> str:
    """TOML of the data, without what TOML cannot hold."""
    return tomli_w.dumps(_tables(data)) if isinstance(data, dict) else f"a = {data!r}"


def _tables(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _tables(x) for key, x in value.items() if x is not None}
    return list(map(_tables, value)) if isinstance(value, list) else "" if value is None else value


def _yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_WithoutAliases, sort_keys=False, allow_unicode=False)


def _written(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, bytes]]:
    """The name and the bytes of a file with the data, in TOML or YAML."""
    formats: tuple[tuple[str, Callable[[Any], str]], ...] = (("toml", _toml), ("yaml", _yaml))

    def write(pair: tuple[Any, tuple[str, Callable[[Any], str]]]) -> tuple[str, bytes]:
        data, (ending, dump) = pair
        return f"case.{ending}", dump(data).encode("utf-8", "surrogatepass")

    return st.tuples(kinds, st.sampled_from(formats)).map(write)


def _texts(data: Any) -> st.SearchStrategy[tuple[str, bytes]]:
    """Files with odd lines of the format among those of the data."""

    def lines(ending: str, text: str, odd: tuple[str, ...]) -> st.SearchStrategy[Any]:
        places = st.lists(
            st.tuples(st.integers(0, 40), st.sampled_from(odd)), min_size=1, max_size=3
        )

        def insert(chosen: list[tuple[int, str]]) -> tuple[str, bytes]:
            rows = text.splitlines()
            for place, piece in chosen:
                index = place % (len(rows) + 1)
                key = rows[index - 1].partition(":")[0] if ending == "yaml" and place % 2 else ""
                rows.insert(index, f"{key}: {piece}" if key else piece)
            return f"case.{ending}", "\n".join(rows).encode("utf-8", "surrogatepass")

        return places.map(insert)

    yaml_text, toml_text = _yaml(data), _toml(data)
    bytes_of_both = mutated(yaml_text.encode(), toml_text.encode())
    endings = st.sampled_from(("case.yaml", "case.toml"))
    only = st.sampled_from(YAML_TAGS).map(
        lambda text: ("case.yaml", f"policy: {text}".encode("utf-8", "surrogatepass"))
    )
    odd = lines("yaml", yaml_text, YAML_TAGS) | lines("toml", toml_text, TOML_PIECES)
    return odd | only | st.tuples(endings, bytes_of_both)


def _in_folder(read: Callable[[Path], object], name: str, content: bytes) -> object:
    """The result of `read` for a file with this content, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return read(path)


def _load_pipeline(path: Path) -> object:
    return load_pipeline_file(path) if is_pipeline_file(path) else None


def _read_stored_pipeline(data: Any) -> object:
    """A pipeline.json with a right fingerprint, as a forger writes it."""

    def read(path: Path) -> None:
        stage_folders(path.parent)
        read_pipeline(path.parent)

    return _in_folder(read, PIPELINE_FILE, pipeline_json(data).encode())


def _read_comparison(content: bytes) -> object:
    return _in_folder(lambda path: load_comparison(path.parent), COMPARISON_FILE, content)


def _as_bytes(data: Any) -> bytes:
    return json.dumps(data).encode()


RECIPE_FILES = Target(
    lambda file: _in_folder(load_recipe_file, *file),
    _written(changed(RECIPE_DATA, *NOTATIONS)) | _texts(RECIPE_DATA),
    cases=900,
)
PIPELINES = Target(
    lambda file: _in_folder(_load_pipeline, *file),
    _written(changed(PIPELINE_DATA, *NOTATIONS)) | _texts(PIPELINE_DATA),
    cases=600,
)
STORED_PIPELINES = Target(
    _read_stored_pipeline,
    changed(STORED_PIPELINE) | json_values("stages", "tuple", "rounds"),
    cases=600,
)
COMPARISONS = Target(
    _read_comparison,
    changed(COMPARISON_DATA, *NOTATIONS).map(_as_bytes)
    | json_values(*COMPARISON_DATA).map(_as_bytes)
    | mutated(_as_bytes(COMPARISON_DATA)),
    cases=600,
)
