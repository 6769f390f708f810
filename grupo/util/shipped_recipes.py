"""The recipes that come with the package: an address `recipes/…` works in any folder."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
NAME = "recipes"


def recipes_folder(package: Path = PACKAGE) -> Path:
    """The folder of the recipes: in an installed package, beside the package in a checkout.

    An installed package lies beside those of other projects, one of which may be named `recipes`.

    Args:
        package: Folder of the package.
    """
    installed = package / NAME
    return installed if installed.is_dir() else package.parent / NAME


def find_recipe(path: Path) -> Path:
    """The path; of a relative `recipes/…` that does not exist, the recipe that has this name.

    A folder `recipes` of the user's own comes first, and files that it does not have are looked up
    in the package.
    """
    if path.is_absolute() or path.parts[:1] != (NAME,) or path.exists():
        return path
    shipped = recipes_folder().joinpath(*path.parts[1:])
    return path if path.parent.is_dir() and not shipped.exists() else shipped
