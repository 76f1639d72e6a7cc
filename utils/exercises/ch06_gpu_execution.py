"""Specifications of chapter 06, execution on a GPU. More are in the _ch06 files beside it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ._ch06_limits import OCCUPANCY, WAVES
from ._ch06_memory import COALESCED_TRANSPOSE_ORDER, SECTORS
from .spec import Exercise, Mistake, Question, Quiz


def _launch_bound_below(launch_seconds, n_inputs, bytes_per_element, bytes_per_s):
    moved = (n_inputs + 1) * Fraction(bytes_per_element)
    return math.ceil(Fraction(launch_seconds) * Fraction(bytes_per_s) / moved)


def _launch_cases(rng):
    def near(n, inputs, size):
        """Bandwidth and launch for which the answer is n, away from rounding."""
        launch = float(rng.uniform(2e-6, 1e-5))
        return launch, inputs, size, (n - rng.uniform(0.2, 0.8)) * (inputs + 1) * size / launch

    return [
        (2.0**-18, 1, 4, 2.0**41),
        (2.0**-17, 2, 4, 3 * 2.0**39),
        (2.0**-16, 3, 2, 2.0**32 + 2.0**17),
        *(
            near(int(rng.integers(10_000, 4_000_000)), int(inputs), int(size))
            for inputs, size in zip((1, 2, 3, 2), (4, 2, 8, 1), strict=True)
        ),
    ]


def _launch_like(moved=lambda inputs, size: (inputs + 1) * size, whole=math.ceil):
    def answer(launch_seconds, n_inputs, bytes_per_element, bytes_per_s):
        return whole(launch_seconds * bytes_per_s / moved(n_inputs, bytes_per_element))

    return answer


LAUNCH_BOUND_BELOW = Exercise(
    id="06.launch_bound_below",
    points=2,
    minutes=5,
    difficulty=1,
    teaches="below a size that two measured numbers give, an op costs its launch",
    cases=_launch_cases,
    expect=_launch_bound_below,
    tolerance=0,
    mistakes=[
        Mistake(
            _launch_like(lambda inputs, size: inputs * size),
            "The result is written too: n_inputs + 1 elements move for each one computed.",
        ),
        Mistake(
            _launch_like(lambda inputs, size: inputs + 1),
            "This counts a byte an element. Divide by bytes_per_element as well.",
        ),
        Mistake(
            _launch_like(lambda inputs, size: size),
            "You counted one array, or one launch for each. An op is launched once, and for each "
            "element of the result it reads n_inputs elements and writes one.",
        ),
        Mistake(
            _launch_like(whole=math.floor),
            "Round up: at the element below, the launch still takes longer.",
        ),
        Mistake(
            _launch_like(lambda inputs, size: 8 * (inputs + 1) * size),
            "This counts bits. Bandwidth and element size are both in bytes.",
        ),
    ],
    hints=[
        "How many bytes could the memory have moved while the launch went on?",
        "launch_seconds · bytes_per_s bytes. One element of the result moves "
        "(n_inputs + 1) · bytes_per_element of them. Round up.",
        "math.ceil(launch_seconds * bytes_per_s / ((n_inputs + 1) * bytes_per_element))",
    ],
)


def _fusion_bytes(n_elements, other_inputs, bytes_per_element):
    """Write the traffic down op by op: names of what is read and written."""
    unfused, seen = [], set()
    for op, others in enumerate(other_inputs):
        unfused += [f"value {op}", *(f"other {op} {k}" for k in range(others)), f"value {op + 1}"]
        seen |= {f"other {op} {k}" for k in range(others)}
    seen |= {"value 0", f"value {len(other_inputs)}"}
    array = n_elements * bytes_per_element
    return {"unfused": len(unfused) * array, "fused": len(seen) * array}


def _fusion_like(unfused=lambda ops: sum(k + 2 for k in ops), fused=lambda ops: sum(ops) + 2):
    def answer(n_elements, other_inputs, bytes_per_element):
        array = n_elements * bytes_per_element
        return {"unfused": unfused(other_inputs) * array, "fused": fused(other_inputs) * array}

    return answer


FUSION_BYTES = Exercise(
    id="06.fusion_bytes",
    points=2,
    minutes=6,
    difficulty=2,
    teaches="fused, what lies between the ops never reaches memory",
    cases=lambda rng: [
        (1_000_000, [1, 0], 4),
        (7, [0], 2),
        (4096 * 4096, [0] * 30, 2),
        (5, [3, 1, 2], 1),
        *(
            (
                int(rng.integers(1, 10**9)),
                rng.integers(0, 3, int(rng.integers(2, 8))).tolist(),
                int(rng.choice([1, 2, 4, 8])),
            )
            for _ in range(4)
        ),
        (10, [1, 1, 1], 4),
    ],
    expect=_fusion_bytes,
    tolerance=0,
    mistakes=[
        Mistake(
            _fusion_like(fused=lambda ops: 2),
            "The other inputs are read by the fused kernel as well: it saves only what lies "
            "between the ops.",
        ),
        Mistake(
            _fusion_like(unfused=lambda ops: sum(k + 1 for k in ops)),
            "Unfused, each op reads the value that the op before wrote, reads its other inputs, "
            "and writes: other_inputs + 2 arrays.",
        ),
        Mistake(
            _fusion_like(unfused=lambda ops: 2 * len(ops)),
            "You forgot the other inputs of the separate ops.",
        ),
        Mistake(
            _fusion_like(fused=lambda ops: sum(ops) + 1),
            "The fused kernel reads the first value and writes the last one: two arrays beside "
            "the other inputs.",
        ),
        Mistake(
            _fusion_like(fused=lambda ops: sum(ops) + 1 + len(ops)),
            "You let the fused kernel write each op's result. What lies between stays in "
            "registers: one array is written.",
        ),
    ],
    hints=[
        "List the arrays that each op touches. Which of them would nobody miss if one kernel did "
        "all ops?",
        "An op touches its value, its other inputs and its result: other + 2 arrays. The fused "
        "kernel touches the first value, all other inputs, and the last result.",
        "unfused: sum(k + 2 for k in other_inputs) arrays; fused: sum(other_inputs) + 2 arrays; "
        "times n_elements · bytes_per_element",
    ],
)


def _tree(values):
    """What is left after folding the upper half onto the lower, and how many folds it took."""
    numbers, steps = np.array(values, dtype=np.float64), 0
    while numbers.size > 1:
        half = -(-numbers.size // 2)
        folded = numbers[:half].copy()
        folded[: numbers.size - half] += numbers[half:]
        numbers, steps = folded, steps + 1
    return {"sum": float(numbers[0]), "steps": steps}


def _tree_cases(rng):
    def mixed(n):
        """Large numbers that cancel and small ones: every order of additions rounds differently,
        and it shows in more than the last digits of what is left."""
        large = rng.normal(size=n // 3) * 10.0 ** rng.integers(10, 14, n // 3)
        return rng.permutation([*large, *-large, *rng.normal(size=n - 2 * (n // 3))]).tolist()

    return [
        ([1.0, 2.0, 3.0, 4.0],),
        ([5.0],),
        ([1.0, 2.0, 4.0],),
        (mixed(32),),
        (mixed(33),),
        (mixed(7),),
        (mixed(256),),
        (mixed(int(rng.integers(40, 300))),),
        (mixed(int(rng.integers(40, 300))),),
    ]


def _folding(fold):
    def answer(values):
        values, steps = list(values), 0
        while len(values) > 1:
            values, steps = fold(values), steps + 1
        return {"sum": values[0], "steps": steps}

    return answer


def _neighbours(values):
    pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
    return pairs + ([values[-1]] if len(values) % 2 else [])


def _dropping(values):
    half = len(values) // 2
    return [values[i] + values[i + half] for i in range(half)]


def _ends(values):
    half = -(-len(values) // 2)
    folded = [values[i] + values[-1 - i] for i in range(len(values) // 2)]
    return folded + values[len(folded) : half]


def _sequential(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


REDUCTION_TREE = Exercise(
    id="06.reduction_tree",
    points=3,
    minutes=8,
    difficulty=2,
    teaches="n numbers are summed in about log2(n) steps, and rounding shrinks as well",
    cases=_tree_cases,
    expect=_tree,
    tolerance=0,
    mistakes=[
        Mistake(
            lambda values: {"sum": _sequential(values), "steps": len(values) - 1},
            "You added one number after the other: len(values) - 1 steps, each waiting for the "
            "one before. In a step of the tree all pairs are added at once.",
        ),
        Mistake(
            lambda values: {
                "sum": _sequential(values),
                "steps": (len(values) - 1).bit_length(),
            },
            "The steps are right; the sum is in another order. Fold the list in half, step by "
            "step: additions round, so the order shows in the last digits.",
        ),
        Mistake(
            _folding(_neighbours),
            "You paired neighbours, i and i + 1. The tree of this exercise adds i + half to i, as "
            "lanes of a warp do.",
        ),
        Mistake(
            _folding(_dropping),
            "With an odd number of values you lost one. half is the length over two rounded up, "
            "and the value without a partner stays.",
        ),
        Mistake(
            _folding(_ends),
            "You paired the first with the last. Value i takes value i + half.",
        ),
        Mistake(
            lambda values: {"sum": math.fsum(values), "steps": (len(values) - 1).bit_length()},
            "This sum is exact, which no GPU computes. Do the tree's additions in its order, each "
            "rounded as it comes.",
        ),
        Mistake(
            lambda values: {
                "sum": _tree(values)["sum"],
                "steps": int(math.log2(len(values))),
            },
            "The sum is right. Steps are log2 of the length rounded up: 33 values need six.",
        ),
    ],
    hints=[
        "With n values and as many lanes as you like: which additions can all be done at once?",
        "half = (n + 1) // 2. For each i with i + half < n, value i takes value i + half; then "
        "keep the first half values. Repeat until one is left, and count the rounds.",
        "while len(values) > 1: half = (len(values) + 1) // 2; values = [values[i] + values[i + "
        "half] if i + half < len(values) else values[i] for i in range(half)]; steps += 1",
    ],
)

EXERCISES = [
    LAUNCH_BOUND_BELOW,
    FUSION_BYTES,
    SECTORS,
    COALESCED_TRANSPOSE_ORDER,
    OCCUPANCY,
    WAVES,
    REDUCTION_TREE,
]

QUIZ = Quiz(
    "06.recall",
    [
        Question(
            "Chapter 0: why does a timer around a GPU operation, without synchronising, show a "
            "few microseconds whatever the operation does?",
            [
                (
                    "The GPU is that fast",
                    "The same operation takes milliseconds when you wait for its result.",
                ),
                (
                    "The result is cached",
                    "Nothing is cached: the work is done again, only later.",
                ),
                (
                    "The call returns once the work is queued",
                    "What you timed is the launch. The GPU works on while Python goes on.",
                ),
            ],
            correct=2,
        ),
        Question(
            "Chapter 3: y = x + b in fp32, all arrays large. What decides its time?",
            [
                ("The additions", "One FLOP for twelve bytes is far below every ridge point."),
                ("The bytes of three arrays", "Two are read and one is written."),
                ("The bytes of one array", "x and b are read, and y is written."),
            ],
            correct=1,
        ),
        Question(
            "Chapter 4: attention in tiles became fast only as one kernel. What did one kernel "
            "save?",
            [
                (
                    "The scores' way to memory and back",
                    "A tile of scores is used where it was made, on the chip.",
                ),
                ("Arithmetic", "Tiles do a little more arithmetic, not less."),
                ("Reading q, k and v", "Keys and values are even read once for each query tile."),
            ],
            correct=0,
        ),
    ],
)
