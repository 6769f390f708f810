"""A mistake of the first hour, and what its one message must contain."""

import re
from dataclasses import dataclass

from grupo.util.exit_codes import EXIT_CONFIG_ERROR

BEGIN = re.compile(r"^(grupo|Error): ", re.MULTILINE)  # of a message, grupo's or typer's


@dataclass(frozen=True)
class Mistake:
    """What a user types, and the three parts of the message.

    Args:
        typed: Arguments of `grupo`, as in a shell, or lines of Python.
        seen: A part of the message: the value or the place that is wrong.
        allowed: A part of the message: what would be right, or why it is wrong.
        fix: A part of the message: what to write or to do.
        place: The section of the diary of the first hour that names the mistake; "" for others.
        code: Exit code; 2 for invalid input, others for errors of a run.
        on_page: True if docs/bad_input.md has these arguments: its own test runs them.
    """

    typed: str
    seen: str
    allowed: str
    fix: str
    place: str = ""
    code: int = EXIT_CONFIG_ERROR
    on_page: bool = False

    @property
    def is_python(self) -> bool:
        """True if the mistake is in lines of Python."""
        return "\n" in self.typed

    @property
    def starts_run(self) -> bool:
        """True if the mistake can be seen in a run only."""
        return self.code != EXIT_CONFIG_ERROR

    def missing_parts(self, message: str) -> list[str]:
        """The parts that a message lacks."""
        return [part for part in (self.seen, self.allowed, self.fix) if part not in message]

    def defects(self, code: int, message: str, new_files: set[str]) -> list[str]:
        """What is wrong with the end of the command; [] if all is right.

        Args:
            code: The exit code.
            message: Text on standard error.
            new_files: Files that the command left behind.
        """
        defects = [f"lacks {part!r}" for part in self.missing_parts(message)]
        if code != self.code:
            defects.append(f"exit code {code}")
        if "Traceback" in message:
            defects.append("a traceback")
        if len(BEGIN.findall(message)) != 1:
            defects.append(f"{len(BEGIN.findall(message))} messages")
        if new_files and not self.starts_run:
            defects.append(f"left {sorted(new_files)[:3]}")
        return defects
