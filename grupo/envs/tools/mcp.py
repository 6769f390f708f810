"""Tools of MCP servers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

from grupo.core.component import component
from grupo.core.ranges import FiniteSeconds
from grupo.envs.bearer_token import check_url, without_token
from grupo.envs.tools.argument_schema import SchemaError, argument_error, check_schema
from grupo.envs.tools.mcp_connection import URL_PREFIXES, McpConnection
from grupo.envs.tools.tool_calls import Tool, ToolCallError
from grupo.util.errors import ConfigError, suggest

ConnectionKey = tuple[str, tuple[tuple[str, str], ...], str]  # address, variables, token_env


@component
class McpServer:
    """The tools of an MCP server, for `Toolbox`: `Toolbox((McpServer("python server.py"),))`.

    The server is started, or connected to, once for each process that trains, and ends with it. A
    server that has ended, or no longer answers, is started again by the next call. Its tools are
    those that it lists first.

    Args:
        address: Command line of a server on standard input and output, or the URL of one over
            streamable HTTP.
        tools: Names of the tools to offer; () offers all.
        call_time_limit: Seconds that a call may take; the `time_limit` of `MultiTurn` must be
            larger.
        variables: Pairs of an environment variable and its value. A server inherits no other but
            HOME, PATH and those that the SDK considers safe.
        token_env: Environment variable that holds the bearer token of a server at a URL; "" for one
            without tokens. The token is never written.
    """

    address: str
    tools: tuple[str, ...] = ()
    call_time_limit: FiniteSeconds = 5.0
    variables: tuple[tuple[str, str], ...] = ()
    token_env: str = ""

    def __post_init__(self) -> None:
        if not self.address.strip():
            raise ConfigError("address: ''. Allowed: a command line, or a URL.")
        has_url = self.address.startswith(URL_PREFIXES)
        if self.variables and has_url:
            raise ConfigError("variables: a server at a URL is already running. Leave them out.")
        if self.token_env and not has_url:
            raise ConfigError("token_env: only a server at a URL takes it. Write variables.")
        if has_url:
            check_url("address", self.address)

    def check(self) -> None:
        """Raises `ConfigError` if the server does not start or lacks one of `tools`."""
        self.tool_specs()

    def tool_specs(self) -> "Sequence[McpTool]":
        """The specifications of the tools, in the server's order."""
        return self._specs

    @cached_property
    def _specs(self) -> "Sequence[McpTool]":
        connection = connection_of(*self._connection_key)
        listed = {tool.name: tool for tool in connection.list_tools()}
        if without_token(list(listed), self.token_env) != list(listed):
            raise ConfigError("address: the names of the server's tools hold its token.")
        for name in self.tools:
            if name not in listed:
                raise ConfigError(f"tools: the server has no {name!r}. {suggest(name, listed)}")
        return [self._spec(tool) for tool in listed.values() if tool.name in (self.tools or listed)]

    @property
    def _connection_key(self) -> ConnectionKey:
        return self.address, self.variables, self.token_env

    def _spec(self, tool: Any) -> "McpTool":
        call = partial(_call, self._connection_key, tool.name, self.call_time_limit)
        description, schema = without_token(
            (tool.description or "", tool.input_schema), self.token_env
        )
        try:
            check_schema(schema)
        except SchemaError as error:
            raise ConfigError(
                f"address: the server's tool {tool.name!r} has a schema that cannot be used:"
                f" {error}. Allowed: JSON Schema 2020-12 without references to anything outside,"
                " with patterns that have no backreferences and do not look around."
            ) from error
        return McpTool(tool.name, description, schema, call)


@dataclass(frozen=True)
class McpTool:
    """A tool of a server as the policy's prompt describes it.

    Args:
        name: The name that calls use.
        description: The server's description.
        parameters: The JSON schema of the arguments.
        function: Calls the tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Tool

    def schema(self) -> str:
        """The function schema of chat templates: JSON on one line."""
        function = {
            "name": self.name, "description": self.description, "parameters": self.parameters
        }  # fmt: skip
        return json.dumps({"type": "function", "function": function})

    def validate_arguments(self, call_arguments: Any) -> dict[str, Any]:
        """The arguments of a call.

        Raises:
            ToolCallError: The arguments do not fit the schema.
        """
        if error := argument_error(self.parameters, call_arguments):
            raise ToolCallError("arguments", f"{self.name}: {error}")
        if not isinstance(call_arguments, dict):  # which the server's schema may allow
            raise ToolCallError("arguments", f"{self.name}: they are no object")
        return call_arguments


@cache
def connection_of(
    address: str, variables: tuple[tuple[str, str], ...] = (), token_env: str = ""
) -> McpConnection:
    """The connection to a server, one for each process."""
    return McpConnection(address, dict(variables), token_env)


def _call(key: ConnectionKey, name: str, time_limit: float, **arguments: Any) -> str:
    return connection_of(*key).call(name, arguments, time_limit)
