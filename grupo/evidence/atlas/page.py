"""The page of the atlas."""


def atlas_page(comparisons, runs, digests) -> str:
    """The page."""
    return ""
