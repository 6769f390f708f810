"""Answers that gcc or GLPK reads: right ones score, wrong ones and cheats do not."""

import asyncio
import shutil

import pytest

from grupo.core.types import Task
from grupo.envs import GLPSOL, CompiledTests, Optimum, ProgramCheck
from grupo.envs.linear_programs import optimal_value
from grupo.envs.tools import ProgramRun, ProgramSandbox
from grupo.rewards.by_column import task_validators
from grupo.util.errors import ConfigError
from tests.helpers.judged import rollout

ADD = '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); BODY }\n'
TESTS = {"inputs": ["1 2", "30 4"], "outputs": ["3", "34"]}
SUM = Task("sum", "Add two numbers.", columns={"tests": TESTS})
PLAN = Task("plan", "A plan.", columns={"optimum": 42})
MODEL = (
    "Maximize\n obj: 3 x + 2 y\nSubject To\n c1: x + y <= 18\n c2: x <= 6\nGenerals\n x\n y\nEnd\n"
)


def needs(program: str):
    """Skips a test on machines without a program."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def c_source(body: str) -> str:
    return ADD.replace("BODY", body)


def score(reward, task: Task, answer: str):
    """The score of one answer, or the error that failed its rollout."""
    (value,) = asyncio.run(reward(task, [rollout(answer)]))
    return value


def compiled(source: str, task: Task = SUM):
    return score(CompiledTests(time_limit=2.0), task, f"```c\n{source}```\n")


@needs("gcc")
@pytest.mark.parametrize(
    ("body", "share"),
    [
        (r'printf("%d\n", a + b);', 1.0),
        (r'printf("3\n");', 0.5),
        (r'printf("%d\n", a - b);', 0.0),
        (r'printf("%d\n", a + b); return 1;', 0.0),
    ],
)
def test_a_source_scores_the_share_of_its_tests(body, share):
    assert compiled(c_source(body)) == {"score": share, "compiles": 1.0}


C_CHEATS = {
    "no program": "",
    "a text": "3\n",
    "ends at once": c_source("return 0;"),
    "reports success": c_source(r'puts("all tests passed: 2/2");'),
    "prints both outputs": c_source(r'puts("3\n34");'),
    "prints text before the output": c_source(r'printf("The sum is %d\n", a + b);'),
    "prints text after the output": c_source(r'printf("%d\nok\n", a + b);'),
    "aborts after the output": c_source(
        r'printf("%d\n", a + b); fflush(stdout); __builtin_trap();'
    ),
    "overflows after the output": c_source(
        r'printf("%d\n", a + b); fflush(stdout); volatile int m = 2147483647; m += a; return m & 0;'
    ),
    "reads a null pointer": c_source(
        r'printf("%d\n", a + b); fflush(stdout); int *volatile p = 0; return *p;'
    ),
    "divides by zero": c_source(
        r'printf("%d\n", a + b); fflush(stdout); volatile int z = 0; return a / z & 0;'
    ),
    "ends like a missing program": "int main(void) { return 127; }\n",
    "names a missing loader": '__asm__(".section .interp; .asciz \\"/x\\"; .previous");\n'
    + c_source("return 0;"),
    "never ends": c_source(r'printf("%d\n", a + b); fflush(stdout); for (;;) ;'),
    "floods its output": c_source(r'for (;;) puts("3");'),
    "looks for files": c_source(
        r'FILE *f = fopen("outputs", "r"); int c; while (f && (c = getc(f)) != EOF) putchar(c);'
    ),
    "kills the sandbox's program": "#include <signal.h>\n#include <unistd.h>\n"
    + c_source(r'printf("%d\n", a + b); fflush(stdout); kill(getppid(), 9); pause();'),
    "kills all processes": "#include <signal.h>\n"
    + c_source(r'printf("%d\n", a + b); fflush(stdout); kill(-1, 9);'),
    "writes a result of its own": c_source(
        r'printf("{\"code\": 0, \"texts\": [\"Mw==\", \"\"], \"outputs\": {}}\n");'
    ),
    "does not link": "int add(int a, int b) { return a + b; }\n",
    "includes a missing file": '#include "outputs.h"\n' + c_source(r'printf("%d\n", a + b);'),
    "includes itself": '#include "main.c"\nint main(void) { return 0; }\n',
    "takes forever to compile": "#define A(x) B(x) B(x)\n#define B(x) C(x) C(x)\n"
    "#define C(x) D(x) D(x)\n"
    "#define D(x) E(x) E(x)\n#define E(x) F(x) F(x)\n#define F(x) x x x x x x x x\n"
    "#define G(x) A(A(A(A(x))))\nG(int a;)\nint main(void) { return 0; }\n",
    "writes the executable itself": '__asm__(".incbin \\"/usr/bin/env\\"");\n'
    "int main(void) { return 0; }\n",
}


@needs("gcc")
@pytest.mark.parametrize("cheat", C_CHEATS)
def test_no_cheat_passes_all_tests_of_a_source(cheat):
    assert len(C_CHEATS) >= 20
    value = compiled(C_CHEATS[cheat])
    assert (value if isinstance(value, float) else value["score"]) == 0.0


@needs("gcc")
def test_an_answer_without_a_block_of_c_scores_0():
    assert score(CompiledTests(), SUM, "int main(void) { return 0; }") == 0.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_limit_that_is_not_positive_and_finite_is_refused(seconds):
    with pytest.raises(ConfigError, match="time_limit"):
        CompiledTests(time_limit=seconds)


def test_assertions_are_refused_for_compiled_programs():
    task = Task("t", "", columns={"tests": ["assert f(1) == 2"]})
    with pytest.raises(ConfigError, match="has assertions"):
        CompiledTests()._cases(task)


def test_a_compiler_with_another_output_is_refused():
    with pytest.raises(ConfigError, match=r"its outputs are \('a.out',\)"):
        CompiledTests(ProgramSandbox(("gcc", "main.c"), outputs=("a.out",)))


def modelled(model: str, task: Task = PLAN):
    return score(ProgramCheck(GLPSOL, "model.lp", Optimum()), task, f"```lp\n{model}```\n")


@needs("glpsol")
def test_a_model_with_the_right_optimum_scores_1():
    assert modelled(MODEL) == 1.0  # 3 * 6 + 2 * 12
    assert modelled(MODEL, Task("plan", "", columns={"optimum": "42.0"})) == 1.0
    assert modelled(MODEL, Task("plan", "", columns={"optimum": 41})) == 0.0
    continuous = MODEL.partition("Generals")[0] + "End\n"
    assert modelled(continuous) == 1.0


LP_CHEATS = {
    "no model": "",
    "the number": "42\n",
    "a solution file": "s mip 2 2 o 42\n",
    "a solution in a comment": "\\ s mip 2 2 o 42\n"
    "Maximize\n obj: x\nSubject To\n"
    " c: x <= 1\nEnd\n",
    "unbounded": "Maximize\n obj: x\nSubject To\n c: x >= 42\nEnd\n",
    "infeasible": "Maximize\n obj: x\nSubject To\n c: x <= 1\n d: x >= 42\nEnd\n",
    "infeasible integers": "Maximize\n obj: 42 x\n"
    "Subject To\n c: x >= 0.4\n d: x <= 0.6\n"
    "Generals\n x\nEnd\n",
    "another direction": MODEL.replace("Maximize", "Minimize"),
    "another bound": MODEL.replace("18", "19"),
    "a missing constraint": MODEL.replace(" c1: x + y <= 18\n", ""),
    "not a number": MODEL.replace("3 x", "nan x"),
    "infinite": MODEL.replace("3 x", "inf x"),
    "a huge coefficient": MODEL.replace("3 x", "1e308 x"),
    "cut off": MODEL.partition("18")[0],
    "data after the end": MODEL.replace("18", "20") + "s mip 2 2 o 42\n",
    "no objective": "Subject To\n c: x <= 42\nEnd\n",
    "an objective of 0": "Maximize\n obj: 0 x\nSubject To\n c: x <= 42\nEnd\n",
    "names of solution files": "Maximize\n solution.txt: x\nSubject To\n c: x <= 1\nEnd\n",
    "a binary file": "\x00\x01\x02",
    "a long line": "Maximize\n obj: " + " + ".join(f"x{i}" for i in range(5000)) + "\nEnd\n",
    "many integers": "Maximize\n obj: "
    + " + ".join(f"{2 * i + 3} x{i}" for i in range(60))
    + "\nSubject To\n c: "
    + " + ".join(f"{2 * i + 3} x{i}" for i in range(60))
    + " <= 1999.5\nBinaries\n "
    + " ".join(f"x{i}" for i in range(60))
    + "\nEnd\n",
}


@needs("glpsol")
@pytest.mark.parametrize("cheat", LP_CHEATS)
def test_no_cheat_has_the_optimum(cheat):
    assert len(LP_CHEATS) >= 20
    assert modelled(LP_CHEATS[cheat]) == 0.0


def test_the_optimum_is_compared_by_a_relative_tolerance():
    def value(number: str, wanted: float) -> float:
        run = ProgramRun(0, outputs={"solution.txt": f"s bas 1 1 f f {number}\n".encode()})
        return Optimum(tolerance=1e-3)(Task("t", "", columns={"optimum": wanted}), run)

    assert value("1000.9", 1000) == 1.0
    assert value("1001.1", 1000) == 0.0
    assert value("0.0009", 0) == 1.0  # absolute below 1
    assert value("0.0011", 0) == 0.0
    assert value("nan", 0) == 0.0


@pytest.mark.parametrize("status", ["f n", "n f", "u u", "i f", "f u"])
def test_a_basic_solution_that_is_not_optimal_has_no_value(status):
    assert optimal_value(f"s bas 1 1 {status} 42\n") is None


@pytest.mark.parametrize("optimum", [None, "many", float("nan"), float("inf")])
def test_a_task_without_an_optimum_is_refused(optimum):
    with pytest.raises(ConfigError, match="Allowed: the optimal value, a finite number"):
        Optimum()(Task("t", "", columns={"optimum": optimum}), ProgramRun(0))


def test_tasks_without_an_optimum_are_refused_before_the_run():
    reward = ProgramCheck(GLPSOL, "model.lp", Optimum())
    validators = [x for x in task_validators(reward) if isinstance(x, Optimum)]
    with pytest.raises(ConfigError, match="Allowed: the optimal value, a finite number"):
        validators[0].validate_tasks([PLAN, Task("t", "")])


@pytest.mark.parametrize("names", [{"file": "a/b"}, {"file": ".."}, {"columns": ("a/b",)}])
def test_a_file_in_another_folder_is_refused(names):
    with pytest.raises(ConfigError, match=r"^ProgramCheck: .*Allowed: the name of a file"):
        ProgramCheck(GLPSOL, **{"file": "model.lp", **names})


@needs("gcc")
def test_columns_are_files_of_the_program():
    compiler = ProgramSandbox(("sh", "-c", "grep -q int main.c && cat data"), package="sh")
    reward = ProgramCheck(compiler, "main.c", columns=("data",))
    task = Task("t", "", columns={"data": "1 2"})
    assert score(reward, task, "```c\nint x;\n```\n") == 1.0
    assert score(reward, task, "```c\nchar x;\n```\n") == 0.0
    with pytest.raises(ConfigError, match="has no column 'data'"):
        reward.validate_tasks([Task("t", "")])
