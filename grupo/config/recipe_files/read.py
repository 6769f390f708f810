"""The data of a recipe file, and the lines at which its fields stand."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from grupo.util.errors import ConfigError, suggest
from grupo.util.json_text import check_depth, read_limited
from grupo.util.limits import JSON_DEPTH, RECIPE_FILE_SIZE, YAML_VALUES
from grupo.util.user_paths import is_recipe_file, parse_path

TEXT_TAG = "tag:yaml.org,2002:str"
MAX_KEY_PARTS = 20  # the time of a key of TOML grows with their square
# strings of TOML, which may end with the file, and comments
TOML_TEXTS = re.compile(
    r'''"""(?:\\[\s\S]|[^\\])*?(?:"{3,5}|\Z)|"(?:\\.|[^"\\\n])*"|#.*'''
    r"""|'''[\s\S]*?(?:'{3,5}|\Z)|'[^'\n]*'"""
)


def read_data(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The data of a TOML or YAML file, and the lines of its fields where the parser gives them.

    Raises:
        ConfigError: There is no such file, or its text is not valid.
    """
    path = parse_path(str(path))
    if not path.is_file():
        folder = path.parent
        siblings = [p.name for p in folder.glob("*") if is_recipe_file(p.name)]
        raise ConfigError(f"There is no file {str(path)!r}. {suggest(path.name, siblings)}")
    try:
        text = read_limited(path, RECIPE_FILE_SIZE)
        is_toml = path.suffix.lower() == ".toml"
        data, lines = (_read_toml(text), {}) if is_toml else _read_yaml(text)
        check_depth(data)
    except ConfigError:  # of a file that is too large or not regular
        raise
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        kind = path.suffix.lstrip(".").upper()
        reason = " ".join(str(error).split()).rstrip(".")
        raise ConfigError(f"{path} is not valid {kind}: {reason}.") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds no table of fields. Write a line: max_steps: 100.")
    return data, lines


class _StrictLoader(yaml.SafeLoader):
    """YAML without aliases, which would expand to any size, and without tags of types.

    The reader of a type raises errors of Python for a text that does not fit, such as
    `!!timestamp soon`.
    """

    num_values = 0
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line + 1
        self.num_values += 1
        if self.num_values > YAML_VALUES.maximum:
            raise ValueError(f"line {line}: too many values. Allowed: {YAML_VALUES.allowed}")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line}: aliases such as *{event.anchor} are not allowed")
        if event.tag not in (None, TEXT_TAG):
            raise ValueError(f"line {line}: tags such as {event.tag} are not allowed")
        self.depth += 1
        if self.depth > JSON_DEPTH.maximum:
            raise ValueError(f"line {line}: nested too deep. Allowed: {JSON_DEPTH.allowed}")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _read_toml(text: str) -> dict[str, Any]:
    """The data of a TOML text; raises `ValueError` for keys of more than `MAX_KEY_PARTS`."""
    bare = TOML_TEXTS.sub("x", text).replace(" ", "").replace("\t", "")
    if max(word.count(".") for word in re.split(r"[^\w.-]+", bare)) >= MAX_KEY_PARTS:
        raise ValueError(f"a key has too many parts. Allowed: at most {MAX_KEY_PARTS}")
    return tomllib.loads(text)


def _read_yaml(text: str) -> tuple[Any, dict[str, int]]:
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        lines = _lines(node, "") if node else {}
        return (loader.construct_document(node) if node else {}), lines
    finally:
        loader.dispose()


def _lines(node: yaml.Node, prefix: str) -> dict[str, int]:
    """The line of each field by dotted name; raises for a key that is no text or occurs twice."""
    lines: dict[str, int] = {}
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines |= _lines(item, f"{prefix.removesuffix('.')}[{index}].")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag != TEXT_TAG:
                kind = key.tag.rpartition(":")[2]
                raise ValueError(f"line {line}: a key is of the type {kind}; write it in quotes")
            field = f"{prefix}{key.value}"
            if field in lines:
                raise ValueError(f"line {line}: the key {field!r} occurs twice")
            lines |= {field: line, **_lines(value, f"{field}.")}
    return lines


def line_of(message: str, lines: Mapping[str, int]) -> int | None:
    """The line of the field that begins a message, or of the table around it.

    >>> line_of("policy.lora.rank: 0. Allowed: 1 or more.", {"policy": 1, "policy.lora": 3})
    3
    """
    field = message.partition(": ")[0]
    while field and field not in lines:
        field = field.rpartition(".")[0]
    return lines.get(field)
