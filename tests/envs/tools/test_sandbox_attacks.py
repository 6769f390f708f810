"""Attacks on the sandbox: every backend refuses each of them; without a sandbox they succeed."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.helpers.sandbox_attacks.attack import Attack, LoneAttack
from tests.helpers.sandbox_attacks.host import (
    planted_host,
    program_parameters,
    run_controls,
    run_driver,
)
from tests.helpers.sandbox_attacks.outside import run_outside
from tests.helpers.sandbox_attacks.programs import attack_program, verdicts
from tests.helpers.sandbox_attacks.table import ATTACKS, LONE_ATTACKS

GROUPED = [attack for attacks in ATTACKS.values() for attack in attacks]
TIME_LIMIT = 40.0
ENDLESS_LIMITS = {"Bubblewrap": 0.7, "Gvisor": 4.0, "Container": 4.0}
# refused to root of this machine, or unknown to its kernel: there is nothing to compare with
MACHINE_ERRORS = (
    "PermissionError",
    "FileNotFoundError",
    "OSError(38,",
    "OSError(97,",
    "OSError(93,",
)
SLOW = pytest.mark.slow
CASES = [
    pytest.param((backend, user), id=f"{backend}-{user}", marks=marks)
    for backend, marks in (("Bubblewrap", ()), ("Gvisor", SLOW), ("Container", SLOW))
    for user in ("this user", "ordinary user")
]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with planted_host(tmp_path_factory.mktemp("host")) as parameters:
        yield parameters


@pytest.fixture(scope="module", params=CASES)
def answers(request, host):
    """The backend, and its answers to all programs of attacks."""
    backend, user = request.param
    if user == "ordinary user" and os.getuid() != 0:
        pytest.skip("only root can start a sandbox as another user")
    if user == "ordinary user" and backend == "Container":
        pytest.skip("the ordinary user has no container engine")
    parameters = program_parameters(host)
    programs = [
        (category, attack_program(attacks, parameters), TIME_LIMIT)
        for category, attacks in ATTACKS.items()
    ]
    limits = {True: ENDLESS_LIMITS[backend], False: TIME_LIMIT}
    programs += [(attack.name, attack.code, limits[attack.is_endless]) for attack in LONE_ATTACKS]
    outputs = run_driver(host, backend, programs, user)
    if "refused" in outputs:
        pytest.skip(outputs["refused"])
    results = {}
    for category in ATTACKS:
        results |= verdicts(outputs[category])
    return backend, results, outputs


@pytest.fixture(scope="module")
def controls(host):
    """Verdicts of the same attacks outside of a sandbox."""
    return run_controls(host, GROUPED)


@pytest.fixture(scope="module")
def lone_controls(host):
    def run(attack: LoneAttack):
        time_limit = ENDLESS_LIMITS["Bubblewrap"] if attack.is_endless else TIME_LIMIT
        return attack.name, run_outside(attack.code, host["folder"], time_limit)

    with ThreadPoolExecutor(8) as pool:
        return dict(pool.map(run, LONE_ATTACKS))


@pytest.mark.parametrize("attack", GROUPED, ids=lambda attack: attack.name)
def test_an_attack_is_refused(answers, attack: Attack):
    backend, results, outputs = answers
    verdict = results.get(attack.name, f"no verdict: {list(outputs.values())[:6]}")
    if backend in attack.backends:
        assert verdict.startswith("refused")
    else:
        assert verdict.split(":")[0] in ("refused", "succeeded")


@pytest.mark.parametrize("attack", GROUPED, ids=lambda attack: attack.name)
def test_an_attack_succeeds_without_a_sandbox(controls, attack: Attack):
    verdict = controls[attack.name]
    lacks_privilege = os.getuid() != 0 and "PermissionError" in verdict
    is_missing = attack.is_optional and any(error in verdict for error in MACHINE_ERRORS)
    if lacks_privilege or is_missing:
        pytest.skip(f"this machine refuses it without a sandbox, too: {verdict}")
    assert verdict == "succeeded"


@pytest.mark.parametrize("attack", LONE_ATTACKS, ids=lambda attack: attack.name)
def test_a_program_is_contained(answers, attack: LoneAttack):
    backend, _, outputs = answers
    if backend in attack.backends:
        assert re.search(attack.refused, outputs[attack.name])


@pytest.mark.parametrize("attack", LONE_ATTACKS, ids=lambda attack: attack.name)
def test_a_program_is_not_contained_without_a_sandbox(lone_controls, attack: LoneAttack):
    assert re.search(attack.control, lone_controls[attack.name])


def test_there_are_150_attacks_with_a_control(controls):
    names = [attack.name for attack in (*GROUPED, *LONE_ATTACKS)]
    assert len(set(names)) == len(names)
    if os.getuid() != 0:
        pytest.skip("many controls need root")
    succeeded = sum(controls[attack.name] == "succeeded" for attack in GROUPED)
    assert succeeded + len(LONE_ATTACKS) >= 150
