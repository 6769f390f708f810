"""Load tasksets of verifiers by name, with the harness and the runtime that play them."""

import os
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any, Literal

from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import load_module
from grupo.util.loader_errors import loader_errors
from grupo.util.optional_deps import optional_dependency

EnvArgs = tuple[tuple[str, Any], ...]
RuntimeName = Literal["", "subprocess", "docker", "podman", "apptainer", "modal", "e2b", "prime"]


def import_tasksets() -> Any:
    """The package `verifiers.v1` of verifiers 0.4."""
    with optional_dependency("verifiers", "tasksets"):
        import_module("verifiers")
    version = metadata.version("verifiers")
    if tuple(map(int, version.split(".")[:2])) < (0, 4):
        raise ConfigError(
            f"env: verifiers {version} has other tasksets. Allowed: 0.4, or verifiers:NAME for an"
            ' environment of 0.2. Install 0.4: pip install "grupo[tasksets]".'
        )
    return import_module("verifiers.v1")


def taskset_config(taskset_id: str, args: EnvArgs) -> Any:
    """The configuration of a taskset of this name.

    Args:
        taskset_id: Name of an installed package, or of a module in the current folder.
        args: Pairs of a field of its configuration and its value.

    Raises:
        ConfigError: verifiers or the taskset is not installed, or has no such field.
    """
    vf = import_tasksets()
    subject = f"env: {taskset_id}"
    with loader_errors(subject):
        module = taskset_id.rpartition("/")[2].partition("@")[0].replace("-", "_").lower()
        if not find_spec(f"verifiers.v1.tasksets.{module.partition('.')[0]}"):
            load_module(module)  # its errors name the searched module
        config = vf.taskset_config_type(taskset_id)
        _check_names(f"{subject}: args", dict(args), tuple(config.model_fields))
        return config.model_validate({**dict(args), "id": taskset_id})


def episode_config(
    taskset: Any, harness: str, harness_args: EnvArgs, runtime: str, max_turns: int
) -> Any:
    """The configuration of an episode: a taskset, and the agent that plays it.

    Args:
        taskset: The configuration of the taskset.
        harness: Name of the harness; "" for that of the taskset, or "null" if it has none.
        harness_args: Pairs of a field of the harness's configuration and its value.
        runtime: Where the harness runs; "" for this machine if it executes no code, else docker.
        max_turns: Calls after which the episode ends.
    """
    vf = import_tasksets()
    subject = f"env: {taskset.id}"
    with loader_errors(subject):
        seat = _only_seat(vf, taskset.id)
        own = vf.default_harness_id(taskset.id)
        harness = harness or ("null" if own == "bash" else own)
        config = vf.harness_config_type(harness)
        _check_names(f"{subject}: harness_args", dict(harness_args), tuple(config.model_fields))
        executes_code = vf.load_harness(config(id=harness)).EXECUTES_CODE
        runtime = runtime or ("docker" if executes_code else "subprocess")
        values: dict[str, Any] = {"id": harness, **dict(harness_args)}
        if runtime == "subprocess":
            values["env"] = _with_scripts(values.get("env", {}))
        agent = {"harness": values, "runtime": {"type": runtime}, "max_turns": max_turns}
        return vf.resolve_env_config({"taskset": taskset.model_dump(), seat: agent})


def _only_seat(vf: Any, taskset_id: str) -> str:
    """The name of the agent of an environment that has one."""
    fields = vf.env_config_type(taskset_id).model_fields
    seats = [name for name, field in fields.items() if isinstance(field.default, vf.AgentConfig)]
    if len(seats) != 1:
        raise ConfigError(
            f"env: {taskset_id!r} is played by {len(seats)} agents: {', '.join(seats)}."
            " Allowed: tasksets that one agent plays."
        )
    return seats[0]


def _with_scripts(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Variables with the programs of this environment on the path: harnesses are started by uv."""
    path = variables.get("PATH", os.environ.get("PATH", ""))
    return {**variables, "PATH": os.pathsep.join((path, sysconfig.get_path("scripts")))}


def _check_names(subject: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise ConfigError(f"{subject}: {name!r} is unknown. {suggest(name, known)}")
