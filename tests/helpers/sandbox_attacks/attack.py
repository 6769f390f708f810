"""The form of an attack on the sandbox."""

from dataclasses import dataclass

BUBBLEWRAP, GVISOR, CONTAINER = "Bubblewrap", "Gvisor", "Container"


@dataclass(frozen=True)
class Attack:
    """Code that tries one thing that a sandbox must refuse; it raises where it is refused.

    The control is the same code outside of the sandbox, in a process of its own: it must not raise.
    `P`, `call`, `read`, `open_for_writing`, `temporary_file_in` are those of `prelude.py`.

    Args:
        name: What is tried.
        code: Statements; an exception means that the attack was refused.
        refusals: Exceptions that mean a refusal; any other one is a defect of the attack.
        backends: Backends that must refuse it; the others give the program something harmless.
        is_optional: Some machines lack the device, the file or the system call: no control there.
        is_allowed_to_programs: `ProgramSandbox` allows it: it starts processes, or its output is a
            file of the temporary folder.
    """

    name: str
    code: str
    refusals: tuple[str, ...] = ("OSError", "AssertionError")
    backends: tuple[str, ...] = (BUBBLEWRAP, GVISOR, CONTAINER)
    is_optional: bool = False
    is_allowed_to_programs: bool = False


@dataclass(frozen=True)
class LoneAttack:
    """A program that stops, kills or floods its process, and so has a sandbox of its own.

    Args:
        name: What is tried.
        code: The program.
        refused: Regular expression that the sandbox's answer contains.
        control: Regular expression that the answer contains outside of the sandbox, where a
            program is stopped after a time or 2 MiB of output.
        backends: As above.
        is_endless: The sandbox must stop the program at its time limit.
        is_allowed_to_programs: As above.
    """

    name: str
    code: str
    refused: str
    control: str
    backends: tuple[str, ...] = (BUBBLEWRAP, GVISOR, CONTAINER)
    is_endless: bool = False
    is_allowed_to_programs: bool = False
