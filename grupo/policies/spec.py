"""What a recipe says of a policy."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from grupo.policies.base import Policy


class Spec(Protocol):
    """A piece, checked before anything is built."""

    @property
    def model(self) -> str:
        """What it is made of: a folder, or a name on a hub."""
        ...

    def check(self) -> None:
        """Refuse what cannot be built, before anything is."""
        ...

    def build(self) -> "Policy":
        """Load it."""
        ...
