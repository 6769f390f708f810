"""Untrusted text (prompts, answers, task names) for rich: no markup, no control characters."""

from rich.text import Text

from grupo.util.terminal_text import escape_controls


def literal(text: str, style: str = "") -> Text:
    """The text for rich without markup: `[bold]` is printed as `[bold]`."""
    return Text(escape_controls(text), style=style)
