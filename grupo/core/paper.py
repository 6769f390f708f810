"""What a method file says of its paper and of itself, beyond what its docstrings and code say."""

from grupo.core.component import component


@component
class Paper:
    """The record of a method file.

    Name, claim, authors, year and arXiv number stand in the first line of its docstring; what the
    method changes is computed from the method. Only what cannot be derived is declared here.
    """

    title: str  # of the paper
    use: str = ""  # when it is the one to take, in a sentence
    trl: str = ""  # the options by which TRL has it, and where they differ
    verl: str = ""  # the same of verl
    checked: tuple[str, ...] = ()  # how: "golden" numbers by hand, "laws", a "reference", a "run"
    example: str = ""  # a call that works, where arguments are required
    catalogue: tuple[str, ...] = ()  # ids of the rows of the project's catalogue it implements
