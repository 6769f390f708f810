"""Programs scored by unit tests in the sandbox: cases by hand, and programs that cheat."""

import asyncio

import pytest

from grupo.core.serialization import from_data, to_data
from grupo.core.types import Response, Rollout, Task
from grupo.envs import CodeTests, RewardTerm, SingleTurn
from grupo.envs.code_tests import last_code_block, task_cases
from grupo.envs.tools import Sandbox
from grupo.rewards import all_met
from grupo.util.errors import ConfigError

SANDBOX = Sandbox(time_limit=2.0)


@pytest.fixture
def sandbox():
    try:
        SANDBOX.check()
    except ConfigError as error:
        pytest.skip(str(error))
    return SANDBOX


def task(tests):
    return Task("k", "?", columns={"tests": tests}, location="t.jsonl, line 2")


def score(tests, *programs, **arguments):
    rollouts = [
        Rollout((("?", Response((), (), text=f"```python\n{program}\n```")),))
        for program in programs
    ]
    env = SingleTurn((RewardTerm("passed", CodeTests(SANDBOX, **arguments)),), time_limit=0.1)
    results = asyncio.run(env.score(task(tests), rollouts))
    assert [result.error for result in results] == [""] * len(programs)
    return [result.reward for result in results]


SUMS = {"inputs": ["1 2\n", "3 4\n", "10 -4\n"], "outputs": ["3\n", "7", "6"]}
CALLS = ["assert double([1]) == [1, 1]", "assert double([2, 3]) == [2, 3, 2, 3]"]
TRUTHS = ["assert is_even(2)", "assert not is_even(3)", "assert is_even(4) is True"]


def test_programs_read_standard_input_in_every_way(sandbox):
    programs = [
        "print(sum(map(int, input().split())))",
        "import sys\nprint(sum(map(int, sys.stdin.read().split())), ' ')",
        "print(sum(map(int, open(0).read().split())))\nprint()",
        "import sys\ndef main():\n    print(sum(map(int, sys.stdin.buffer.read().split())))\n"
        "if __name__ == '__main__':\n    main()\n    sys.exit(0)",
    ]
    assert score(SUMS, *programs) == [1.0] * 4


def test_the_score_is_the_share_of_the_tests_or_all(sandbox):
    program = "a, b = map(int, input().split())\nprint(a + abs(b))"
    assert score(SUMS, program) == [2 / 3]
    assert score(SUMS, program, combine=all_met) == [0.0]


def test_functions_are_called_with_the_arguments_of_assertions(sandbox):
    programs = [
        "def double(items):\n    print('working')\n    return items + items",
        "def double(items):\n    return [1, 1]",
        "def double(items):\n    raise ValueError",
        "def doubled(items):\n    return items + items",
    ]
    assert score(CALLS, *programs) == [1.0, 0.5, 0.0, 0.0]
    even = "def is_even(n):\n    return n % 2 == 0"
    assert score(TRUTHS, even, "is_even = lambda n: 1 - n % 2") == [1.0, 2 / 3]


INPUT_CHEATS = {
    "visible test only": "print(3) if input() == '1 2' else print(0)",
    "exits early": "import os; os._exit(0)",
    "raises SystemExit": "raise SystemExit(0)",
    "reads files of tests": "import glob\nfor p in glob.glob('/tmp/**', recursive=True):"
    "\n    print(open(p).read()) if p.endswith('txt') else None",
    "prints all outputs": "print(3)\nprint(7)\nprint(6)",
    "prints a report": "print('PASSED'); print('3 passed in 0.01s')",
    "fails after the output": "print(sum(map(int, input().split())))\nraise ValueError",
    "reads the frames": "import sys\nprint(vars(sys._getframe(1)))",
    "sleeps": "import time; time.sleep(60)",
    "empty": "",
    "syntax error": "def",
    "long output": "print('3' * 3_000_000)",
}
CALL_CHEATS = {
    "equal to everything": "class A(list):\n    def __eq__(self, other):\n        return True\n"
    "    __repr__ = lambda self: 'A()'\ndef double(items):\n    return A()",
    "exits early": "import os\nos._exit(0)",
    "exits in the call": "def double(items):\n    raise SystemExit(0)",
    "replaces repr": "import builtins\nbuiltins.repr = lambda value: 'True'\n"
    "def double(items):\n    return None",
    "forges a result": "import atexit\natexit.register(lambda: print('True'))\n"
    "def double(items):\n    return None",
    "reads the marker": "import sys\nframe = sys._getframe(1)\n"
    "def double(items):\n    print(chr(10) + str(vars(frame)))\n    import os\n    os._exit(0)",
    "replaces the comparison": "list.__eq__ = lambda a, b: True\ndef double(items): return []",
    "mutates the arguments": "def double(items):\n    items.clear()\n    return items",
    "returns code": "class A:\n    __repr__ = lambda self: '__import__(\"os\").getpid()'\n"
    "def double(items):\n    return A()",
    "deep value": "class A:\n    __repr__ = lambda self: '[' * 50000\ndef double(items):\n"
    "    return A()",
}


@pytest.mark.parametrize("cheat", INPUT_CHEATS)
def test_programs_that_cheat_with_their_output_earn_no_more_than_they_solve(sandbox, cheat):
    solved = {"visible test only": 1 / 3}.get(cheat, 0.0)
    assert score(SUMS, INPUT_CHEATS[cheat]) == [solved]
    assert score(SUMS, INPUT_CHEATS[cheat], combine=all_met) == [0.0]


@pytest.mark.parametrize("cheat", CALL_CHEATS)
def test_programs_that_cheat_with_their_values_earn_nothing(sandbox, cheat):
    assert score(CALLS, CALL_CHEATS[cheat]) == [0.0]


@pytest.mark.parametrize("cheat", ["equal to everything", "exits early"])
def test_assertions_in_the_process_of_the_program_are_no_grader(sandbox, cheat):
    output = sandbox.run("\n".join((CALL_CHEATS[cheat], *CALLS)))
    assert "(ended with" not in output


def test_a_value_much_longer_than_the_expected_one_is_not_parsed(sandbox):
    programs = [f"def f(): return [1] * {length}" for length in (100, 100_000)]
    assert score(["assert f()"], *programs) == [1.0, 0.0]
    expected = ", ".join("1" * 100_000)  # 300,000 characters
    assert score([f"assert f() == [{expected}]"], programs[1]) == [1.0]


def test_texts_without_a_program_pass_nothing():
    for text in ("<think>```python\nprint(3)\n```", "```python\nprint(3)", "#" * 100_001):
        assert CodeTests(SANDBOX).score_text(task(SUMS), text) == 0.0


def test_the_last_block_of_python_is_the_program():
    assert last_code_block("```python\na\n```\nor\n```py\nb\n```\n") == "b\n"
    assert last_code_block("print(1)") == "print(1)"
    assert last_code_block("```python\nprint(1)") is None


@pytest.mark.parametrize(
    "tests",
    [
        None,
        [],
        {"inputs": ["1"], "outputs": []},
        {"inputs": []},
        ["print(1)"],
        ["assert f(1) == g(1)"],
        ["assert f(1) < 2"],
        ["assert f(1) == 2; import os"],
        ["assert ("],
        "no tests",
    ],
)
def test_malformed_tests_are_config_errors_that_name_the_row(tests):
    with pytest.raises(ConfigError, match=r"t.jsonl, line 2, column 'tests': .*Allowed: inputs"):
        CodeTests().validate_tasks([task(tests)])


def test_tests_may_be_json_text():
    assert len(task_cases(task('{"inputs": ["1"], "outputs": ["2"]}'), "tests")) == 1


def test_it_returns_from_its_record():
    reward = CodeTests(Sandbox(time_limit=3.0), "cases", combine=all_met)
    assert from_data(to_data(reward)) == reward
