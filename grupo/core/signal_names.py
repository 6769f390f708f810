"""The names of signals: what is said, and by whom.

entropy              of the policy itself
logp@ref             what another says: a reference, a teacher, the policy in another context
logp@t=1.2           what the policy says at 1.2 times its temperature
reverse_kl@teacher   a comparison of the policy with another, over all it could have done
disagreement         what only a whole group can say: how far its rollouts are from each other
mark/state           what the world says of an action
"""

COMPARISONS = ("reverse_kl", "forward_kl", "jsd")
OF_GROUPS = ("disagreement",)


def split(name: str) -> tuple[str, str]:
    """What is said, and by whom: "" is the policy itself.

    >>> split("logp@ref"), split("entropy")
    (('logp', 'ref'), ('entropy', ''))
    """
    signal, _, who = name.partition("@")
    return signal, who


def compares(name: str) -> bool:
    """Is it a comparison, which only the policy can make?

    >>> compares("jsd@teacher"), compares("logp@teacher")
    (True, False)
    """
    return split(name)[0] in COMPARISONS


def is_mark(name: str) -> bool:
    """Does the world say it?"""
    return name.startswith("mark/")


def is_live(name: str) -> bool:
    """Can the policy say it anew, of itself alone, whenever it is asked?

    >>> is_live("entropy"), is_live("logp@ref"), is_live("mark/state"), is_live("sampled")
    (True, False, False, False)
    """
    return "@" not in name and not is_mark(name) and name != "sampled"


def tempered(who: str) -> float:
    """The factor on the temperature that a name asks for; 0 where it asks for none.

    >>> tempered("t=1.2"), tempered("ref")
    (1.2, 0.0)
    """
    try:
        return float(who.removeprefix("t=")) if who.startswith("t=") else 0.0
    except ValueError:
        return 0.0
