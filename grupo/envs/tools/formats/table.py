"""All formats of tool calls, and the one that a chat template uses."""

from grupo.envs.tools.formats.call import FormatName, ToolFormat
from grupo.envs.tools.formats.deepseek import DEEPSEEK
from grupo.envs.tools.formats.functiongemma import FUNCTIONGEMMA
from grupo.envs.tools.formats.gemma import GEMMA
from grupo.envs.tools.formats.glm import GLM
from grupo.envs.tools.formats.harmony import HARMONY
from grupo.envs.tools.formats.hermes import HERMES
from grupo.envs.tools.formats.llama import LLAMA
from grupo.envs.tools.formats.mistral import MISTRAL
from grupo.envs.tools.formats.phi4_mini import PHI4_MINI
from grupo.envs.tools.formats.pythonic import PYTHONIC
from grupo.envs.tools.formats.qwen3_coder import QWEN3_CODER
from grupo.envs.tools.formats.react import REACT

# of two markers in one template, the first counts
FORMATS: dict[str, ToolFormat] = {
    tool_format.name: tool_format
    for tool_format in (
        *(HARMONY, MISTRAL, QWEN3_CODER, GLM, HERMES, LLAMA, PYTHONIC, DEEPSEEK, FUNCTIONGEMMA),
        *(PHI4_MINI, GEMMA, REACT),
    )
}
OTHER_FORM = "<seed:tool_call>"  # that of Seed-OSS, which no format here reads
DEFAULT_FORMAT = HERMES  # of policies that no chat template describes


def format_named(name: FormatName) -> ToolFormat:
    """The format of a name; that of "auto" outside of a run."""
    return DEFAULT_FORMAT if name == "auto" else FORMATS[name]


def format_of_template(template: str) -> ToolFormat | None:
    """The format that models with a chat template write; None if it is none of these formats.

    >>> format_of_template("{{ '[TOOL_CALLS]' }}").name
    'mistral'
    """
    if OTHER_FORM in template:
        return None
    marked = (f for f in FORMATS.values() if any(marker in template for marker in f.markers))
    return next(marked, None)
