"""Formats of tool calls: how families of models write them, and how a text is read.

One module has one format; `table` has all of them, and chooses one by a chat template.
"""

from grupo.envs.tools.formats.call import FormatName, ToolCall, ToolFormat, valid_call_id
from grupo.envs.tools.formats.table import (
    DEFAULT_FORMAT,
    FORMATS,
    format_named,
    format_of_template,
)

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "FormatName",
    "ToolCall",
    "ToolFormat",
    "format_named",
    "format_of_template",
    "valid_call_id",
]
