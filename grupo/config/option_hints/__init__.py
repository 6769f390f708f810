"""Names of options in other libraries, with grupo's options: the tables of docs/migrate.md.

Unknown options and fields are looked up here, and `grupo migrate` translates files with them.
"""

from fnmatch import fnmatchcase

from grupo.config.option_hints.common import COMMON
from grupo.config.option_hints.openrlhf import OPENRLHF
from grupo.config.option_hints.option import Library, OtherOption
from grupo.config.option_hints.prime_rl import PRIME_RL
from grupo.config.option_hints.trl import TRL
from grupo.config.option_hints.verl import VERL

__all__ = ["COMMON", "LIBRARIES", "Library", "OtherOption", "explain_option", "find_option"]

LIBRARIES = (TRL, VERL, OPENRLHF, PRIME_RL)
SHORTEST_SUFFIX = 2  # names of a nested option that identify it: rollout.n


def find_option(name: str, library: Library) -> OtherOption | None:
    """The option of a library by its name; patterns such as `trainer.*` come last.

    >>> find_option("trainer.optim.lr", PRIME_RL).answer
    '--learning-rate {}'
    """
    for option in library.options:
        if option.name == name:
            return option
    return next((o for o in library.options if fnmatchcase(name, o.name)), None)


def explain_option(name: str, value: str = "") -> str:
    """grupo's option for an option of another library, in a sentence; "" if no library has it.

    Args:
        name: The name as it was written, with hyphens or underscores.
        value: The value that was given with it.

    >>> explain_option("num-generations", "8")
    "TRL's --num-generations is --method.sampler.group-size 8."
    >>> explain_option("rollout.n", "4")
    "verl's actor_rollout_ref.rollout.n is --method.sampler.group-size 4."
    """
    plain = name.strip("-+").lower().replace("-", "_")
    for library in (*LIBRARIES, COMMON):
        if option := find_option(plain, library):
            return _sentence(library, option, value)
    if plain.count(".") + 1 < SHORTEST_SUFFIX:
        return ""
    for library in LIBRARIES:
        ending = [o for o in library.options if o.name.endswith(f".{plain}")]
        if len(ending) == 1:
            return _sentence(library, ending[0], value)
    return ""


def _sentence(library: Library, option: OtherOption, value: str) -> str:
    name = option.name.replace("_", "-") if library.prefix else option.name
    owner = f"{library.name}'s " if library.name else ""
    subject = f"{owner}{library.prefix}{name}"
    if not option.answer:
        return f"{subject} has no counterpart: {option.note}."
    note = f" ({option.note})" if option.note else ""
    return f"{subject} is {option.grupo_option(value)}{note}."
