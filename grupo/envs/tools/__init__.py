"""Tools: functions that the policy calls by name, and the environment that runs the calls."""

from grupo.envs.tools.backends import Bubblewrap, Container, Gvisor
from grupo.envs.tools.blocks import Block, BlockTools
from grupo.envs.tools.keyword_search import KeywordSearch
from grupo.envs.tools.mcp import McpServer
from grupo.envs.tools.parsed_calls import ParsedCalls
from grupo.envs.tools.program_sandbox import ProgramRun, ProgramSandbox
from grupo.envs.tools.python import Python
from grupo.envs.tools.sandbox import Sandbox
from grupo.envs.tools.sql import Sql
from grupo.envs.tools.tool_calls import ToolSpec, tool_spec
from grupo.envs.tools.tool_env import Toolbox

__all__ = [
    "Block",
    "BlockTools",
    "Bubblewrap",
    "Container",
    "Gvisor",
    "KeywordSearch",
    "McpServer",
    "ParsedCalls",
    "ProgramRun",
    "ProgramSandbox",
    "Python",
    "Sandbox",
    "Sql",
    "ToolSpec",
    "Toolbox",
    "tool_spec",
]
