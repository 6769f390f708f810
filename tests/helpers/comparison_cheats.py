r"""Published cheats of comparisons: infinite numbers, answers that hang or crash, lenient equality.

Each row as in `extraction_cheats`.
"""

from tests.helpers.extraction_cheats import BOXED, tag

TABLE = (
    # infinite and undefined numbers
    ("inducer/relate#651", "math", "5.0", "5", ("nan", "NaN", r"\text{nan}", "0/0")),
    (
        "DMOJ/judge-server#279",
        "chart",
        "100",
        tag("100"),
        tuple(map(tag, ("nan", "inf", "-inf", "1e400"))),
    ),
    (
        "harbor-framework/harbor#2887",
        "math",
        "4",
        "4",
        ("1e309", "1e400", "Infinity", "-oo", "1/0"),
    ),
    # answers that hang, crash or escape from the grader
    (
        "hkust-nlp/simpleRL-reason#95",
        "math within 0.5 s",
        "4",
        BOXED,
        (r"\boxed{9^{9^{9^{9}}}}", r"\boxed{1000000!}"),
    ),
    (
        "sympy/sympy#24279",
        "math within 0.5 s",
        "4",
        BOXED,
        (r"\sin(\sin(\exp(\exp(\exp(\exp(3))))+3))",),
    ),
    (
        "huggingface/Math-Verify#59",
        "math within 0.5 s",
        "4",
        BOXED,
        (r"10^{(5^{5^{5^{5^{5}}} \cdot \log_{10}(5)} - 4)}", "99999999^{99999999}"),
    ),
    (
        "sympy/sympy#30000",
        "math within 0.5 s",
        "4",
        BOXED,
        (
            "(" * 900 + "4" + ")" * 900,
            "x" + "+(x" * 300 + ")" * 300,
            "4" + "!" * 500,
            "4" * 5000,
        ),
    ),
    (
        "verl-project/verl#7607",
        "math within 0.5 s",
        "4",
        BOXED,
        (
            "__import__('os').getpid()",
            "9**9**9**9",
            "(2**4000)*(2**4000)",
            "[c for c in ().__class__.__base__.__subclasses__()]",
        ),
    ),
    (
        "SWE-bench/SWE-bench#608",
        "math",
        "4",
        BOXED,
        (
            '5\n{"equal": true}',
            '{"equal": true}',
            '"}\n{"equal": true}\n',
            ">>>>> Test Exit Code: 0",
        ),
    ),
    ("SWE-bench/SWE-bench#620", "text", "4", "4", ("PASSED test_answer", "1 passed in 0.01s")),
    (
        "arXiv 2511.18397",
        "math",
        "4",
        BOXED,
        (
            "type('AlwaysEqual', (), {'__eq__': lambda self, other: True})()",
            "import sys; sys.exit(0)",
            "import os; os._exit(0)",
        ),
    ),
    (
        "Terminal-Bench#2020",
        "math",
        "4",
        BOXED,
        ("import pytest; pytest.skip(allow_module_level=True)",),
    ),
    ("huggingface/OpenEnv#1200", "text", "4", "4", ("echo 1.0 > reward.txt", "1.0")),
    # characters that look like others
    ("Unicode TS 39", "text", "x4", "x4", ("х4", "x４", "x٤")),  # noqa: RUF001
    ("Unicode TS 39", "math", "x", "x", ("х", "𝑥", "χ")),  # noqa: RUF001
    ("Unicode TS 39", "math", "4", "4", ("④", "٤", "4\u0338", "\u202e4")),
    # comparisons that were too lenient
    (
        "huggingface/Math-Verify#14",
        "math",
        r"\frac{1}{2^{99}}",
        r"2^{-99}",
        (r"\frac{1}{2^{98}}", "0"),
    ),
    ("huggingface/Math-Verify#14", "math", r"\pm 2021", "-2021, 2021", ("2021", "-2021")),
    ("huggingface/Math-Verify#14", "math", "n=2, 3, 4", "2, 3, 4", ("n=1, 2, 3", "n")),
    ("huggingface/Math-Verify#14", "math", "D = (0, 1)", "(0,1)", ("D = (0, 1.5)", "D")),
    ("huggingface/Math-Verify#14", "math", "12:00", "12:00", ("1:00", "0:0")),
    ("huggingface/Math-Verify#41", "math", "4", "$4$", (r"$4\sqrt(2)$", r"4\foo(2)")),
    ("huggingface/Math-Verify#60", "math", "3x-y+13=0", "y = 3x + 13", ("3x+4y+14=0", "0=0")),
    (
        "huggingface/Math-Verify#40",
        "math",
        r"\frac{x^2}{4}+\frac{y^2}{3}=1",
        "3x^2 + 4y^2 = 12",
        (r"\frac{x^2}{16}+\frac{y^2}{12}=1", "1=1"),
    ),
    (
        "asuzukosi/post-training-experiments#49",
        "math",
        "7",
        "7",
        ("about 7", "7 or 8", "7?", r"\approx 7"),
    ),
    (
        "math-verify 0.9.0",
        "math",
        "4",
        BOXED,
        (
            *("4%", r"4\%", "4 percent", "lambda: 4", "not 4", r"\neq 4", "1=4", "x = 3 = 4"),
            *("5 or 4", r"\ge 4", "4 hundred", "4 squared", r"4 \text{ or more}", r"\{4\}"),
        ),
    ),
    ("math-verify 0.9.0", "math", "5", "5", ("the answer is 4, 5 or 6", "5ab", "-5 + 5")),
    ("math-verify 0.9.0", "math", "(1, 2)", "(1,2)", (r"\{1, 2\}", "2, 1", "1 < 2")),
)
