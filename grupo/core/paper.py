"""Facts about a method's paper that cannot be derived from its docstring or code."""

from grupo.core.component import component


@component
class Paper:
    """The record of a method file.

    Name, claim, authors, year and arXiv number are in the first line of the file's docstring, and
    the slots that the method changes are computed from it. Everything else is declared here.

    Args:
        title: Title of the paper.
        use: When to choose this method, in a sentence.
        trl: The options by which TRL implements it, and the differences.
        verl: The same for verl.
        checked: How the implementation was checked: "golden" numbers by hand, the
            "properties" of `grupo method check`, a "reference" implementation, a "run".
        example: A call that works, where arguments are required.
        catalogue: Ids of the rows of the project's catalogue that the method implements.
    """

    title: str
    use: str = ""
    trl: str = ""
    verl: str = ""
    checked: tuple[str, ...] = ()
    example: str = ""
    catalogue: tuple[str, ...] = ()
