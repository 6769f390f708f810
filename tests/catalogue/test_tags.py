"""The tags of methods: a closed vocabulary, and the search by tags."""

import pytest

from grupo.catalogue.entries import methods, tagged_entries
from grupo.catalogue.search import find_entry
from grupo.core.paper import TAGS, Paper
from grupo.util.errors import ConfigError


@pytest.mark.parametrize("entry", methods(), ids=lambda entry: entry.key)
def test_every_method_has_1_to_4_different_tags_of_the_vocabulary(entry):
    assert 1 <= len(entry.tags) <= 4
    assert len(set(entry.tags)) == len(entry.tags)
    assert set(entry.tags) <= set(TAGS)
    assert entry.to_data()["tags"] == entry.tags


def test_every_tag_of_the_vocabulary_has_a_meaning_and_methods():
    assert all(TAGS.values())
    assert {tag for entry in methods() for tag in entry.tags} == set(TAGS)
    assert list(TAGS) == sorted(TAGS)


def test_an_unknown_tag_is_refused_with_the_nearest_tag():
    message = "'lenght' is no tag. Did you mean 'length'\\? Allowed: advantage, "
    with pytest.raises(ConfigError, match=f"Paper.tags: {message}"):
        Paper(title="X", tags=("kl", "lenght"))
    with pytest.raises(ConfigError, match=f"tag: {message}"):
        tagged_entries(methods(), ["lenght"])


def test_tagged_entries_have_all_tags():
    length = tagged_entries(methods(), ["length"])
    assert length == tuple(entry for entry in methods() if "length" in entry.tags)
    assert find_entry("dr_grpo") in length
    both = tagged_entries(methods(), ["length", "critic"])
    assert both == tuple(entry for entry in length if "critic" in entry.tags)
    assert tagged_entries(methods(), []) == methods()
