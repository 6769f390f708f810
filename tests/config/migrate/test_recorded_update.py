"""A migrated method has the advantages, the loss and the gradient that its library computed."""

from math import isnan

import pytest

from grupo.algo.advantages import Whiten, chain
from tests.config.migrate.peer_files import migrate_openrlhf, migrate_trl, migrate_verl, name_of
from tests.config.migrate.recorded import (
    assert_advantages_are_recorded,
    assert_loss_is_recorded,
    load_updates,
)
from tests.config.migrate.test_migrate import recipe_of

MIGRATIONS = {"trl": migrate_trl, "verl": migrate_verl, "openrlhf": migrate_openrlhf}
UPDATES = [
    pytest.param(library, update, id=f"{library} {name_of(update.options)}")
    for library in MIGRATIONS
    for update in load_updates(library)
]
COMPARED = [case for case in UPDATES if not isnan(case.values[1].loss)]
GAE = [case for case in UPDATES if isnan(case.values[1].loss)]


@pytest.mark.parametrize(("library", "recorded"), COMPARED)
def test_advantages_loss_and_gradient_are_recorded(tmp_path, library, recorded):
    migration = MIGRATIONS[library](tmp_path, recorded.options)
    method = recipe_of(migration.text).method
    assert list(migration.untranslated) == list(recorded.named)
    assert_advantages_are_recorded(method, recorded)
    assert_loss_is_recorded(method, recorded)


@pytest.mark.parametrize(("library", "recorded"), GAE)
def test_whitened_advantages_of_gae_are_recorded(tmp_path, library, recorded):
    migration = MIGRATIONS[library](tmp_path, recorded.options)
    method = recipe_of(migration.text).method
    assert "GAE" in "".join(migration.untranslated.values())  # with the missing whitening
    whitened = method.replace(advantage=chain(method.advantage, Whiten()))
    assert_advantages_are_recorded(whitened, recorded)
