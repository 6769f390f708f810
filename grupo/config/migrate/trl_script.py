"""Reads the options of a script that makes a trainer of TRL; it is parsed, never executed."""

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.migrate.settings import OptionValues
from grupo.config.migrate.trl_script_remarks import name_of, other_trainers, script_remarks
from grupo.config.migrate.trl_trainers import TRAINER
from grupo.util.errors import ConfigError

KINDS = ("GRPO", "RLOO", "AsyncGRPO")
KIND_CONFIGS = tuple(f"{kind}Config" for kind in KINDS)
CONFIGS = (*KIND_CONFIGS, "LoraConfig", "ModelConfig", "ScriptArguments")
FILE_LOADERS = ("json", "csv", "parquet", "text", "arrow")  # load_dataset of files of a format
UNBOUNDED = ("vllm_importance_sampling_clip_max",)  # None is no bound, and not the default
TRAINERS = tuple(f"{kind}Trainer" for kind in KINDS)
MODEL_CALLS = ("from_pretrained", "get_peft_model")  # their first argument is the model
LOADING = "model_init_kwargs"  # a dictionary of options for from_pretrained
LOADING_NAMES = {"revision": "model_revision"}
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
    known = [call for call in calls if name_of(call) in (*CONFIGS, *TRAINERS)]
    constants = _constants(tree) | _argument_defaults(calls)
    source = OptionValues({TRAINER: _kind(path, calls)})
    for call in known:
        for keyword in call.keywords:
            _read_keyword(source, name_of(call), keyword, constants)
    _read_fields(source, tree, known, constants)
    _read_trainer(source, known, constants, _functions(tree, path))
    source.remarks += script_remarks(tree, TRAINERS)
    if data_set := _data_set(source, calls, constants):
        source.values["dataset"] = data_set
    return source


def _kind(path: Path, calls: list[ast.Call]) -> str:
    """The kind of the trainer that a script makes; raises ConfigError if it makes none of them."""
    names = {name_of(call) for call in calls}
    kinds = [kind for kind in KINDS if names & {f"{kind}Config", f"{kind}Trainer"}]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        made = " and ".join(f"{kind}Trainer" for kind in kinds)
        raise ConfigError(f"{path} makes {made}, or their configurations. Allowed: one of them.")
    made = ", ".join((*KIND_CONFIGS, *TRAINERS))
    raise ConfigError(f"{path} makes none of {made}{other_trainers(names)}.")


def _constants(tree: ast.AST) -> dict[str, Any]:
    """Variables that are assigned one constant, or the model of that name."""
    constants: dict[str, Any] = {}
    assigned: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            value = _value(node.value, constants)
            is_kept = target.id not in assigned or constants.get(target.id) == value
            if value is not None and is_kept:
                constants[target.id] = value
            else:
                constants.pop(target.id, None)
            assigned.add(target.id)
    return constants


def _argument_defaults(calls: list[ast.Call]) -> dict[str, Any]:
    """The defaults of argparse's options by their use in a script, such as `args.num_epochs`."""
    defaults = {}
    for call in calls:
        if name_of(call) == "add_argument" and call.args:
            name = str(_value(call.args[0], {})).lstrip("-").replace("-", "_")
            values = [_value(k.value, {}) for k in call.keywords if k.arg == "default"]
            defaults |= {f"args.{name}": value for value in values if value is not None}
    return defaults


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The constant that an expression is, or the name of its model; None if it is none."""
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
    if isinstance(node, ast.Call) and name_of(node) in MODEL_CALLS and node.args:
        return _value(node.args[0], constants)
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
    if name == LOADING and isinstance(keyword.value, ast.Call | ast.Dict):
        for entry in _loading_options(keyword.value):
            _read_keyword(source, "", entry, constants)
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


def _loading_options(node: ast.Call | ast.Dict) -> list[ast.keyword]:
    """The options in `dict(revision="main")` or `{"revision": "main"}`."""
    if isinstance(node, ast.Call):
        entries = [(k.arg, k.value) for k in node.keywords]
    else:
        names = [_value(key, {}) if key else None for key in node.keys]
        entries = list(zip(names, node.values, strict=True))
    return [ast.keyword(LOADING_NAMES.get(str(name), name), value) for name, value in entries]


def _read_fields(
    source: OptionValues, tree: ast.AST, calls: list[ast.Call], constants: Mapping[str, Any]
) -> None:
    """Options that are set as fields of the trainer's `args`, such as `settings.beta = 0.01`."""
    keywords = [k for call in calls if name_of(call) in TRAINERS for k in call.keywords]
    settings = {ast.unparse(k.value) for k in keywords if k.arg == "args"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            field, value = target, node.value
            if isinstance(target, ast.Subscript):  # an entry of a dictionary
                field, value = target.value, ast.Dict([target.slice], [node.value])
            if not isinstance(field, ast.Attribute) or ast.unparse(field.value) not in settings:
                continue
            if field is target or field.attr == LOADING:
                _read_keyword(source, "", ast.keyword(field.attr, value), constants)
            else:
                source.remarks.append(f"{ast.unparse(node)[:80]} was not read")


def _read_trainer(
    source: OptionValues,
    calls: list[ast.Call],
    constants: Mapping[str, Any],
    functions: Mapping[str, str],
) -> None:
    """The model and the reward functions of the trainer."""
    for call in calls:
        if name_of(call) not in TRAINERS:
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
    codes = [ast.unparse(entry) for entry in entries]
    addresses = [functions[code] for code in codes if code in functions]
    if unknown := [code[:60] for code in codes if code not in functions]:
        source.values["reward_model_path"] = ", ".join(unknown)
    weights = source.values.get("reward_weights")
    if isinstance(weights, list | tuple) and len(weights) == len(codes):
        pairs = zip(weights, codes, strict=True)
        source.values["reward_weights"] = [weight for weight, code in pairs if code in functions]
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
        if name_of(call) != "load_dataset" or not call.args:
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
