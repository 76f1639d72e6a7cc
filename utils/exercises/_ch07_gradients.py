"""Chapter 07: LayerNorm's gradients, which rows share, and a cross-entropy in one pass."""

from __future__ import annotations

import numpy as np

from ._ch07_elementwise import SECTOR, normal
from ._ch07_rows import block_for
from .kernels import WrongKernel, right, run
from .spec import Exercise, Mistake


def wrong(name: str) -> WrongKernel:
    return WrongKernel("_ch07_wrong_gradients", name)


def statistics(x, eps=1e-5):
    """Mean and 1 / standard deviation of each row, in fp32."""
    wide = x.astype(np.float64)
    rstd = 1 / np.sqrt(wide.var(axis=1) + eps)
    return wide.mean(axis=1).astype(np.float32), rstd.astype(np.float32)


def backward_limits(rows: int, columns: int, each: int) -> dict[str, float]:
    programs = -(-rows // each)
    moved = 4 * (3 * rows * columns + 2 * rows + 3 * programs * columns)
    return {"at_most_bytes": moved, "coalescing": 0.9 if columns % SECTOR == 0 else 0.0}


def drive_backward(kernel, x, weight, d_out, each):
    """each: rows of a program."""
    rows, columns = x.shape
    sums = [np.zeros(columns, dtype=np.float32) for _ in range(2)]
    args = [x, weight, *statistics(x), d_out, np.empty_like(x), *sums, rows, columns]
    constants = {"ROWS": each, "BLOCK": block_for(columns)}
    limits = backward_limits(rows, columns, each)
    updated = {"d_weight": 6, "d_bias": 7}
    return run(kernel, (-(-rows // each),), args, {"d_x": 5}, constants, updated=updated, **limits)


def layernorm_backward(x, weight, d_out, each):
    """By the Jacobian of a row: d x_hat_i / d x_j = rstd (delta_ij - 1/n - x_hat_i x_hat_j / n)."""
    mean, rstd = (s.astype(np.float64)[:, None] for s in statistics(x))
    x_hat = (x - mean) * rstd
    n = x.shape[1]
    d_x = np.empty(x.shape)
    for row in range(len(x)):
        jacobian = rstd[row] * (np.eye(n) - 1 / n - np.outer(x_hat[row], x_hat[row]) / n)
        d_x[row] = jacobian @ (d_out[row].astype(np.float64) * weight)
    sums = {"d_weight": (d_out * x_hat).sum(axis=0), "d_bias": d_out.astype(np.float64).sum(axis=0)}
    return right({"d_x": d_x, **sums}, **backward_limits(*x.shape, each))


def backward_cases(rng):
    def case(rows, columns, each):
        x = normal(rng, rows, columns, scale=2) + normal(rng, rows, 1)
        return x, 1 + 0.5 * normal(rng, columns), normal(rng, rows, columns), each

    return [case(9, 40, 4), case(3, int(rng.integers(33, 60)), 2), case(8, 32, 8)]


LAYERNORM_BACKWARD = Exercise(
    id="07.layernorm_backward_kernel",
    points=5,
    minutes=25,
    difficulty=4,
    teaches="sums over rows cross programs: reduce on the chip first, then one atomic a program",
    cases=backward_cases,
    expect=layernorm_backward,
    tolerance=2e-5,
    drive=drive_backward,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("backward_no_atomic"),
            "Several programs write d_weight, and each forgets what the others added since it "
            "looked. Use tl.atomic_add.",
        ),
        Mistake(
            wrong("backward_no_other"),
            "A mask has no `other`, so lanes past the row add anything to the means. Use other=0.",
        ),
        Mistake(
            wrong("backward_each_row"),
            "Every row adds to d_weight in memory. Sum the rows of a program in a block first, and "
            "add once.",
        ),
        Mistake(
            wrong("backward_no_end"),
            "The last program has fewer than ROWS rows: those past `rows` must be left out.",
        ),
        Mistake(
            wrong("backward_no_weight"),
            "What arrives at x_hat is d_out times weight. The weight is missing in d_x.",
        ),
        Mistake(
            wrong("backward_no_mean"),
            "Each x moves the row's mean, and with it all others: subtract the mean of "
            "d_out * weight.",
        ),
        Mistake(
            wrong("backward_no_spread"),
            "Each x moves the row's standard deviation: subtract x_hat times the mean of "
            "d_out * weight * x_hat.",
        ),
        Mistake(wrong("backward_no_rstd"), "d_x is missing its factor rstd."),
        Mistake(
            wrong("backward_block"),
            "The means are over `columns` numbers, not over the lanes of BLOCK.",
        ),
        Mistake(
            wrong("backward_raw_x"),
            "weight multiplied x_hat in the forward pass, so d_weight sums d_out * x_hat, not "
            "d_out * x.",
        ),
        Mistake(wrong("backward_exchanged"), "d_weight and d_bias are exchanged."),
    ],
    hints=[
        "Which results belong to one row, and which to all rows? Who else adds to the second kind?",
        "For each of the program's rows compute x_hat and g = d_out * weight, store d_x, and add "
        "d_out * x_hat and d_out to two blocks of zeros. After the loop two tl.atomic_add.",
        "d_x = (g - tl.sum(g, axis=0) / columns - x_hat * tl.sum(g * x_hat, axis=0) / columns) "
        "* rstd, with other=0 in the loads; d_weight += d_out * x_hat; d_bias += d_out; at the end "
        "tl.atomic_add(d_weight_ptr + c, d_weight, mask=c < columns)",
    ],
)


def entropy_limits(rows: int, vocab: int, stride: int) -> dict[str, float]:
    whole = vocab % SECTOR == 0 and stride % SECTOR == 0
    return {"at_most_bytes": rows * (4 * vocab + 20), "coalescing": 0.9 if whole else 0.0}


def drive_entropy(kernel, logits, targets, vocab, block):
    rows, stride = logits.shape
    view = logits[:, :vocab]
    args = [view, targets, *(np.empty(rows, dtype=np.float32) for _ in range(2)), stride, vocab]
    outputs = {"loss": 2, "log_total": 3}
    limits = entropy_limits(rows, vocab, stride)
    return run(kernel, (rows,), args, outputs, {"BLOCK": block}, **limits)


def cross_entropy(logits, targets, vocab, block):
    rows, stride = logits.shape
    seen = logits[:, :vocab].astype(np.float64)
    top = seen.max(axis=1)
    log_total = top + np.log(np.exp(seen - top[:, None]).sum(axis=1))
    loss = log_total - seen[np.arange(rows), targets]
    outputs = {"loss": loss, "log_total": log_total}
    return right(outputs, **entropy_limits(rows, vocab, stride))


def entropy_cases(rng):
    def case(rows, vocab, padding, block=32, scale=2.0, rises=False):
        logits = normal(rng, rows, vocab + padding, scale=scale)
        if rises:  # the maximum comes in the last block, so that every sum must be corrected
            logits[:, :vocab].sort(axis=1)
        logits[1] -= 5 * scale if scale > 2 else 0  # a row without a number near 0
        return logits, rng.integers(0, vocab, rows), vocab, block

    return [
        case(3, 72, 8),
        case(2, 96, 0, rises=True),
        case(2, int(rng.integers(40, 60)), 3, scale=150.0, rises=True),
        case(2, 5, 0, block=4),
    ]


CROSS_ENTROPY = Exercise(
    id="07.cross_entropy_kernel",
    points=4,
    minutes=20,
    difficulty=3,
    teaches="a row longer than a block is reduced in one pass, and probabilities are never stored",
    cases=entropy_cases,
    expect=cross_entropy,
    tolerance=2e-5,
    drive=drive_entropy,
    needs_triton=True,
    mistakes=[
        Mistake(
            wrong("entropy_one_block"),
            "Only the first BLOCK logits of the row are seen. A row is longer than a block: loop "
            "over it.",
        ),
        Mistake(
            wrong("entropy_two_passes"),
            "The row is read twice, for the maximum and again for the sum. Correct the sum when "
            "the maximum rises, and one pass is enough.",
        ),
        Mistake(
            wrong("entropy_no_factor"),
            "When the maximum rises, the sum so far must be multiplied by exp(old - new).",
        ),
        Mistake(
            wrong("entropy_no_max"),
            "exp overflows past 88. Carry the maximum along and subtract it.",
        ),
        Mistake(
            wrong("entropy_zero"),
            "Lanes past the vocabulary hold 0 and take part. Use other=-float('inf').",
        ),
        Mistake(
            wrong("entropy_no_other"),
            "The mask has no `other`: lanes past the vocabulary hold anything, and they take part. "
            "Use other=-float('inf').",
        ),
        Mistake(
            wrong("entropy_stride"),
            "Row p starts at p * stride: rows are padded, so stride can be more than vocab.",
        ),
        Mistake(
            wrong("entropy_padding"),
            "The padding behind the vocabulary is read as logits. The row ends at vocab.",
        ),
        Mistake(
            wrong("entropy_log_without_max"),
            "log(total) is the logarithm of a sum of exp(logit - maximum): add the maximum back.",
        ),
        Mistake(
            wrong("entropy_target_row"),
            "The target's logit is taken from row 0. It lies at row * stride + target.",
        ),
        Mistake(
            wrong("entropy_sign"),
            "This is the logarithm of the probability. The loss is its negative.",
        ),
    ],
    hints=[
        "Chapter 4's online softmax keeps two numbers. Which, and what happens to the second when "
        "the first rises?",
        "Start with top = -infinity and total = 0. For each block: new = max(top, the block's), "
        "total = total * exp(top - new) + sum(exp(block - new)). Load the target's logit alone.",
        "for first in range(0, vocab, BLOCK): i = first + tl.arange(0, BLOCK); block = tl.load("
        "logits_ptr + row * stride + i, mask=i < vocab, other=-float('inf')); ... Then log_total = "
        "top + tl.log(total) and loss = log_total - tl.load(logits_ptr + row * stride + target)",
    ],
)
