"""Reads the options of a script that makes a trainer of TRL; it is parsed, never executed."""

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.migrate.settings import OptionValues
from grupo.config.migrate.trl_trainers import TRAINER
from grupo.util.errors import ConfigError

KINDS = ("GRPO", "RLOO", "AsyncGRPO")
KIND_CONFIGS = tuple(f"{kind}Config" for kind in KINDS)
CONFIGS = (*KIND_CONFIGS, "LoraConfig", "ModelConfig", "ScriptArguments")
FILE_LOADERS = ("json", "csv", "parquet", "text", "arrow")  # load_dataset of files of a format
UNBOUNDED = ("vllm_importance_sampling_clip_max",)  # None is no bound, and not the default
ROW_CHANGES = ("map", "filter", "select", "rename_column", "rename_columns")  # of a data set
TRAINERS = tuple(f"{kind}Trainer" for kind in KINDS)
LORA_NAMES = {"r": "lora_r", "target_modules": "lora_target_modules"}
LORA_DETAILS = ("task_type", "bias", "inference_mode")  # they change nothing in grupo
TRAINER_DETAILS = ("args", "peft_config", "processing_class", "tokenizer", "callbacks")


def read_trl_script(path: Path, text: str) -> OptionValues:
    """The options of all calls that configure the training.

    Raises:
        ConfigError: The text is no Python, makes no trainer of GRPO or RLOO, or several.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no Python script: {error}.") from error
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    known = [call for call in calls if _name(call) in (*CONFIGS, *TRAINERS)]
    constants = _constants(tree) | _argument_defaults(calls)
    source = OptionValues({TRAINER: _kind(path, calls)})
    for call in known:
        for keyword in call.keywords:
            _read_keyword(source, _name(call), keyword, constants)
    _read_fields(source, tree, known, constants)
    _read_trainer(source, known, constants, _functions(tree, path))
    _name_changes_of_rows(source, calls)
    if data_set := _data_set(source, calls, constants):
        source.values["dataset"] = data_set
    return source


def _kind(path: Path, calls: list[ast.Call]) -> str:
    """The kind of the trainer that a script makes; raises ConfigError if it makes none of them."""
    names = {_name(call) for call in calls}
    kinds = [kind for kind in KINDS if names & {f"{kind}Config", f"{kind}Trainer"}]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        made = " and ".join(f"{kind}Trainer" for kind in kinds)
        raise ConfigError(f"{path} makes {made}, or their configurations. Allowed: one of them.")
    others = sorted(name for name in names if name.endswith("Trainer"))
    made = f", but {', '.join(others)}" if others else ""
    raise ConfigError(f"{path} makes none of {', '.join((*KIND_CONFIGS, *TRAINERS))}{made}.")


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _constants(tree: ast.AST) -> dict[str, Any]:
    """Variables that are assigned a constant once."""
    constants: dict[str, Any] = {}
    assigned: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            value = _value(node.value, constants)
            if value is not None and target.id not in assigned:
                constants[target.id] = value
            else:
                constants.pop(target.id, None)
            assigned.add(target.id)
    return constants


def _argument_defaults(calls: list[ast.Call]) -> dict[str, Any]:
    """The defaults of argparse's options by their use in a script, such as `args.num_epochs`."""
    defaults = {}
    for call in calls:
        if _name(call) == "add_argument" and call.args:
            name = str(_value(call.args[0], {})).lstrip("-").replace("-", "_")
            values = [_value(k.value, {}) for k in call.keywords if k.arg == "default"]
            defaults |= {f"args.{name}": value for value in values if value is not None}
    return defaults


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The constant that an expression is; None if it is none."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if (code := ast.unparse(node)) in constants:
        return constants[code]
    if isinstance(node, ast.Attribute) and node.attr in ("bfloat16", "float16", "float32"):
        return node.attr
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add | ast.Sub | ast.Div):
        left, right = _value(node.left, constants), _value(node.right, constants)
        if isinstance(left, int | float) and isinstance(right, int | float):
            return _arithmetic(node.op, left, right)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _arithmetic(operator: ast.operator, left: float, right: float) -> float | None:
    match operator:
        case ast.Mult():
            return left * right
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
    return left / right if right else None


def _read_keyword(
    source: OptionValues, owner: str, keyword: ast.keyword, constants: Mapping[str, Any]
) -> None:
    if keyword.arg is None:
        source.remarks.append(f"**{ast.unparse(keyword.value)[:60]} was not read")
        return
    name = keyword.arg
    if owner in TRAINERS or (owner == "LoraConfig" and name in LORA_DETAILS):
        return
    if owner == "LoraConfig":
        name = LORA_NAMES.get(name, name)
    value = _value(keyword.value, constants)
    if value is None and ast.unparse(keyword.value) != "None":
        source.values[name] = None
        source.remarks.append(f"{name} = {ast.unparse(keyword.value)[:60]} is no constant")
    elif value is not None:
        source.values[name] = value
    elif name in UNBOUNDED:
        source.values[name] = math.inf


def _read_fields(
    source: OptionValues, tree: ast.AST, calls: list[ast.Call], constants: Mapping[str, Any]
) -> None:
    """Options that are set as fields of the trainer's `args`, such as `settings.beta = 0.01`."""
    keywords = [k for call in calls if _name(call) in TRAINERS for k in call.keywords]
    settings = {ast.unparse(k.value) for k in keywords if k.arg == "args"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) in settings:
                field = ast.keyword(target.attr, node.value)
                _read_keyword(source, "", field, constants)


def _name_changes_of_rows(source: OptionValues, calls: list[ast.Call]) -> None:
    """Add a remark if the script changes the rows of its data set."""
    if any(_name(call) == "load_dataset" for call in calls):
        methods = {_name(call) for call in calls if isinstance(call.func, ast.Attribute)}
        if changes := [name for name in ROW_CHANGES if name in methods]:
            source.remarks.append(
                f"the script changes its rows by {' and '.join(changes)}, which is not executed:"
                " tasks reads the rows as they are stored"
            )


def _read_trainer(
    source: OptionValues,
    calls: list[ast.Call],
    constants: Mapping[str, Any],
    functions: Mapping[str, str],
) -> None:
    """The model and the reward functions of the trainer."""
    for call in calls:
        if _name(call) not in TRAINERS:
            continue
        arguments = {k.arg: k.value for k in call.keywords if k.arg}
        if (node := arguments.get("model")) is not None:
            model = _value(node, constants)
            if isinstance(model, str):
                source.values.setdefault("model_name_or_path", model)
        if (node := arguments.get("reward_funcs")) is not None:
            source.values["reward_funcs"] = _rewards(source, node, functions)
        known = ("model", "reward_funcs", "train_dataset", "eval_dataset", *TRAINER_DETAILS)
        for name in arguments:
            if name not in known:
                source.values[name] = ast.unparse(arguments[name])[:60]


def _rewards(source: OptionValues, node: ast.expr, functions: Mapping[str, str]) -> list[str]:
    """The addresses of the reward functions."""
    entries = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    addresses = []
    for entry in entries:
        code = ast.unparse(entry)
        if code in functions:
            addresses.append(functions[code])
        else:
            source.values["reward_model_path"] = code[:60]
    if any(address.partition(":")[0].endswith(".py") for address in addresses):
        source.remarks.append(
            "importing a reward function runs its script: move it to a file of its own"
        )
    return addresses


def _functions(tree: ast.AST, path: Path) -> dict[str, str]:
    """Addresses of the functions that the script defines or imports, by name."""
    functions = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions[node.name] = f"{path}:{node.name}"
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                functions[alias.asname or alias.name] = f"{node.module}:{alias.name}"
    return functions


def _data_set(source: OptionValues, calls: list[ast.Call], constants: Mapping[str, Any]) -> str:
    """The text of `--tasks` for the first `load_dataset` of a constant name."""
    for call in calls:
        if _name(call) != "load_dataset" or not call.args:
            continue
        path, *config = [_value(argument, constants) for argument in call.args]
        named = {str(k.arg): _value(k.value, constants) for k in call.keywords}
        settings = {"config": (config or [named.get("name")])[0], "split": named.get("split")}
        if isinstance(settings["split"], list | tuple):
            source.remarks.append(f"of the splits {settings['split']} the first was taken")
            settings["split"] = settings["split"][0]
        if path in FILE_LOADERS:
            return _data_file(source, named.get("data_files"), str(settings["split"] or "train"))
        given = [f"{key}={value!r}" for key, value in settings.items() if value]
        if isinstance(path, str):
            return f"{path}({', '.join(given)})" if given else path
    return ""


def _data_file(source: OptionValues, files: Any, split: str) -> str:
    """The first of the files of a split; "" if they are no constant."""
    chosen = files.get(split) if isinstance(files, dict) else files
    paths = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        source.remarks.append("the data_files of load_dataset are no constant: set tasks")
        return ""
    if len(paths) > 1:
        source.remarks.append(f"of data_files the first was taken: join {', '.join(paths)}")
    return paths[0] if paths else ""
