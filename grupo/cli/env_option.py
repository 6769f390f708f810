"""The option `--env`: environments of other libraries, and `SqlQuestions('FILE')`."""

import ast
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from grupo.config.parse_value import parse_value
from grupo.core.component import component_fields
from grupo.core.interfaces import EnvSpec
from grupo.core.protocols import is_protocol, protocol_methods
from grupo.envs import MultiplayerEnv, MultiTurn, RewardTerm, SingleTurn, Unscored
from grupo.envs.games import Gymnasium, GymnasiumTasks, TextArena, TextArenaTasks
from grupo.envs.openenv import OpenEnv, OpenEnvTasks
from grupo.envs.proxy import ProxyEnv
from grupo.envs.sql import SqlQuestions
from grupo.envs.tasksets import TasksetAgent, TasksetTasks
from grupo.envs.tools import McpServer, Toolbox
from grupo.envs.verifiers import Verifiers, VerifiersTasks
from grupo.tasks.base import TaskSource
from grupo.util.errors import ConfigError, suggest
from grupo.util.importing import import_function
from grupo.util.python_text import parse_expression

FORM = "KIND:NAME, or KIND:NAME(argument=value, …)"
OWN_ENV = "SqlQuestions"  # whose tasks and database are files of the user's
DEFAULT_COUNT = 1000  # tasks of an environment that makes as many as are wanted
Arguments = Mapping[str, ast.expr]


@dataclass(frozen=True)
class EnvKind:
    """The components that an environment's text makes.

    Args:
        component: The component whose first field is NAME.
        env: The environment around the component, with further arguments.
        tasks: The source of the environment's own tasks; None if the user has to give some.
        make_factory: Makes the environment factory of the component.
    """

    component: Any
    env: Any = MultiTurn
    tasks: Any = None
    make_factory: Callable[[Any], Any] = lambda component: component


ENV_KINDS = {
    "gymnasium": EnvKind(Gymnasium, tasks=GymnasiumTasks),
    "mcp": EnvKind(McpServer, make_factory=lambda server: Toolbox((server,))),
    "openenv": EnvKind(OpenEnv, tasks=OpenEnvTasks),
    "proxy": EnvKind(ProxyEnv, env=None),
    "taskset": EnvKind(TasksetAgent, env=ProxyEnv, tasks=TasksetTasks),
    "textarena": EnvKind(TextArena, env=MultiplayerEnv, tasks=TextArenaTasks),
    "verifiers": EnvKind(Verifiers, env=None, tasks=VerifiersTasks),
}


def parse_env(text: str) -> tuple[EnvSpec, TaskSource | None]:
    """The environment that a text describes, and its own tasks if it has any.

    Args:
        text: `KIND:NAME(argument=value, …)`. The arguments are those of the component, of the
            environment around it, and of its tasks. A function is written as 'file.py:function'.
            Or `SqlQuestions('FILE', argument=value, …)`.

    >>> env, tasks = parse_env("gymnasium:CartPole-v1(max_turns=5, count=20)")
    >>> env.env_factory.env_id, env.max_turns, tasks.count
    ('CartPole-v1', 5, 20)
    """
    if text.strip().startswith(f"{OWN_ENV}("):
        return parse_value(text.strip(), SqlQuestions, "env"), None
    kind_name, _, rest = text.strip().partition(":")
    if kind_name not in ENV_KINDS:
        own_form = f"{OWN_ENV}('FILE')"
        hint = suggest(kind_name.partition("(")[0], (*ENV_KINDS, OWN_ENV))
        raise ConfigError(f"{text!r}. Write {FORM}, or {own_form}. {hint}")
    kind = ENV_KINDS[kind_name]
    name, arguments = _split_call(rest)
    classes = [kind.component, *filter(None, (kind.env, kind.tasks))]
    _check_names(kind_name, arguments, [f for cls in classes for f in _argument_names(cls)])
    component = kind.component(name, **_values(kind.component, arguments))
    env = component
    if kind.env:
        env = kind.env(kind.make_factory(component), **_values(kind.env, arguments))
    return env, _own_tasks(kind, component, arguments)


def with_rewards(env: Any, rewards: tuple[RewardTerm, ...]) -> EnvSpec:
    """The environment with these reward terms; those of another library have a reward beside it."""
    if isinstance(env, Unscored):
        return SingleTurn(rewards)
    if "rewards" not in component_fields(env):
        raise ConfigError(f"reward: {type(env).__name__} has rewards of its own. Leave it out.")
    return replace(env, rewards=rewards)


def _own_tasks(kind: EnvKind, component: Any, arguments: Arguments) -> TaskSource | None:
    if not kind.tasks:
        return None
    values = _values(kind.tasks, arguments)
    if "count" in _argument_names(kind.tasks):
        values.setdefault("count", DEFAULT_COUNT)
    first_field = fields(kind.tasks)[0].name  # the component, or the field that is its name
    is_name = first_field in component_fields(component)
    source = getattr(component, first_field) if is_name else component
    return kind.tasks(source, **values)


def _split_call(text: str) -> tuple[str, Arguments]:
    """`NAME(argument=value, …)` as the name and the code of each argument."""
    name, bracket, inside = text.partition("(")
    if not name.strip():
        raise ConfigError(f"{text!r} has no name. Write {FORM}.")
    if not bracket:
        return name.strip(), {}
    try:
        call = parse_expression(f"f({inside}")
        assert isinstance(call, ast.Call), "the text begins as a call"
    except (SyntaxError, AssertionError) as error:
        raise ConfigError(f"{text!r} is not valid. Write {FORM}.") from error
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ConfigError(f"{text!r}: an argument has no name. Write {FORM}.")
    return name.strip(), {str(keyword.arg): keyword.value for keyword in call.keywords}


def _argument_names(cls: type) -> Sequence[str]:
    """The fields of a component but the first, which is the name or another component."""
    return [field.name for field in fields(cls)[1:]]


def _check_names(kind: str, arguments: Arguments, known: Sequence[str]) -> None:
    for name in arguments:
        if name not in known:
            raise ConfigError(f"{kind} has no argument {name!r}. {suggest(name, known)}")


def _values(cls: type, arguments: Arguments) -> dict[str, Any]:
    """The values of those arguments that are fields of a component."""
    hints = typing.get_type_hints(cls, include_extras=True)
    own = [name for name in _argument_names(cls) if name in arguments]
    return {name: _value(arguments[name], hints[name], name) for name in own}


def _value(node: ast.expr, hint: Any, name: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_function(hint):
        return import_function(node.value)
    return parse_value(ast.unparse(node), hint, name)


def _is_function(hint: Any) -> bool:
    is_callable = typing.get_origin(hint) is Callable
    return is_callable or (is_protocol(hint) and protocol_methods(hint) == {"__call__"})
