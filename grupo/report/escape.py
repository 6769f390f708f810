"""Untrusted text (prompts, answers, task names) for rich: no markup, no control characters."""

from rich.text import Text

from grupo.util.terminal_text import escape_controls, one_line


def literal(text: str, style: str = "") -> Text:
    """The text for rich without markup: `[bold]` is printed as `[bold]`."""
    return Text(escape_controls(text), style=style)


def literal_line(text: str, style: str = "") -> Text:
    """As `literal`, in one line: a name that holds a line end begins no line of its own."""
    return Text(one_line(text), style=style)
