"""A recipe file, with remarks, for a file of another library."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
import yaml

from grupo.config.migrate import openrlhf, prime_rl, trl, verl
from grupo.config.migrate.settings import OptionValues
from grupo.config.migrate.shell import read_flags, read_hydra_arguments
from grupo.config.migrate.trl_script import read_trl_script
from grupo.config.option_hints import LIBRARIES, Library, find_option
from grupo.config.recipe_files import recipe_from_data
from grupo.util.errors import ConfigError
from grupo.util.json_text import read_limited
from grupo.util.user_paths import parse_path

TRANSLATIONS: Mapping[str, Callable[[OptionValues], dict[str, Any]]] = {
    "TRL": trl.translate,
    "verl": verl.translate,
    "OpenRLHF": openrlhf.translate,
    "prime-rl": prime_rl.translate,
}
ALLOWED = "a Python script of TRL, YAML or a shell script of verl, a shell script of OpenRLHF"
VERL_SECTIONS = {"actor_rollout_ref", "algorithm", "trainer"}
COMMAND_OPTIONS = ("--wandb", "--tensorboard", "--trackio", "--run")
PRIME_RL_SECTIONS = {"orchestrator", "trainer", "inference"}


@dataclass(frozen=True)
class Migration:
    """A recipe file made of another library's file.

    Args:
        library: The other library.
        text: The recipe in TOML, with remarks as comments.
        untranslated: Each option that has no counterpart, with the reason.
    """

    library: str
    text: str
    untranslated: Mapping[str, str]


def migrate_file(path: str | Path) -> Migration:
    """The recipe for a script or a configuration, which is read and never executed.

    Raises:
        ConfigError: The file cannot be read, or is of no library.
    """
    path = parse_path(str(path))
    if not path.is_file():
        raise ConfigError(f"There is no file {str(path)!r}. Allowed: {ALLOWED}.")
    try:
        text = read_limited(path)
    except ValueError as error:
        raise ConfigError(f"{path} is no text: {str(error).rstrip('.')}.") from error
    name, source = _read(path, text)
    data = TRANSLATIONS[name](source)
    library = next(library for library in LIBRARIES if library.name == name)
    left_out = _left_out(source, library)
    _check(data, source)
    title = f"Translated from {path}, which is for {name}. docs/migrate.md has the tables."
    comments = _comments(title, source.remarks, left_out)
    return Migration(name, f"{comments}\n{tomli_w.dumps(data)}", left_out.untranslated)


def _read(path: Path, text: str) -> tuple[str, OptionValues]:
    """The library and the options of a file."""
    match path.suffix.lower():
        case ".py":
            return "TRL", read_trl_script(path, text)
        case ".sh" | ".bash" if "openrlhf" in text:
            return "OpenRLHF", read_flags(text)
        case ".sh" | ".bash":
            source = read_hydra_arguments(text)
            if any(name.split(".")[0] in VERL_SECTIONS for name in source.values):
                return "verl", source
        case ".yaml" | ".yml" | ".toml":
            data = _parse(path, text)
            if VERL_SECTIONS & set(data) and "orchestrator" not in data:
                return "verl", OptionValues(_flat(data))
            if PRIME_RL_SECTIONS & set(data):
                return "prime-rl", OptionValues(_flat(data))
    raise ConfigError(f"{path} is of no known library. Allowed: {ALLOWED}, or TOML of prime-rl.")


def _parse(path: Path, text: str) -> Mapping[str, Any]:
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not valid: {' '.join(str(error).split())}.") from error
    return data if isinstance(data, dict) else {}


def _flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Values by dotted name; references of OmegaConf and empty tables are left out."""
    if not isinstance(data, dict):
        is_reference = isinstance(data, str) and data.startswith("${")
        return {} if data is None or is_reference else {prefix: data}
    return {
        name: value
        for key, inner in data.items()
        for name, value in _flat(inner, f"{prefix}.{key}" if prefix else str(key)).items()
    }


@dataclass(frozen=True)
class LeftOut:
    """The options that are not in the recipe.

    Args:
        untranslated: Those without counterpart, with the reason.
        neutral: Those that change no result: devices, memory, logs, and what is switched off.
        command: Options of `grupo train`, which a recipe does not hold.
    """

    untranslated: dict[str, str]
    neutral: list[str]
    command: dict[str, str]


def _left_out(source: OptionValues, library: Library) -> LeftOut:
    """The options of a file that its translation has not read."""
    left_out = LeftOut(dict(source.differing), [], {})
    for name, value in source.values.items():
        option = find_option(name, library)
        is_default = option is not None and str(value) == option.default
        if name in source.used:
            continue
        flag = option.grupo_option(str(value)).split(" ")[0] if option else ""
        if flag in COMMAND_OPTIONS and not is_default:
            left_out.command[flag] = name
        elif is_default or (option and option.is_neutral) or _is_off(name, value):
            left_out.neutral.append(name)
        elif option:
            note = option.note or f"see {option.grupo_option()}"
            left_out.untranslated[name] = f"{value!r}: {note}"
        else:
            note = f"it is not among the known options of {library.name}"
            left_out.untranslated[name] = f"{value!r}: {note}"
    return left_out


def _is_off(name: str, value: Any) -> bool:
    return name.endswith("_target_") or value in (False, 0, -1, "", "null", "disabled", [], {})


def _check(data: dict[str, Any], source: OptionValues) -> None:
    """Add what is wrong with the recipe to the remarks; its reward functions are not imported."""
    rewards = [{**reward, "fn": "ExactMatch()"} for reward in data["env"]["rewards"]]
    try:
        recipe_from_data({**data, "env": {"rewards": rewards}})
    except ConfigError as error:
        source.remarks.append(f"to be corrected: {error}")


def _comments(title: str, remarks: list[str], left_out: LeftOut) -> str:
    lines = [title]
    if remarks:
        lines += ["", "To check:", *(f"* {remark}" for remark in remarks)]
    if left_out.untranslated:
        items = left_out.untranslated.items()
        lines += ["", "Not translated:", *(f"* {name} = {reason}" for name, reason in items)]
    if left_out.command:
        lines += ["", f"Options of grupo train: {', '.join(left_out.command)}"]
    if left_out.neutral:
        lines += ["", f"Left out, without effect on the result: {', '.join(left_out.neutral)}"]
    return "\n".join(f"# {line}".rstrip() for text in lines for line in text.splitlines() or [""])
