"""The mistakes of chapter 08's products: the course's solutions, each with one slip.

A name here is that of a slip. It is made when it is asked for, because kernels need Triton.
"""

from __future__ import annotations

import functools
from typing import Any

from .slips import made

BIAS = "tl.load(bias_ptr + columns, mask=columns < n, other=0.0)"
SCALE = "tl.load(scale_ptr + rows, mask=row_ok, other=0.0)"
A_LOAD = "x = tl.load(a, mask=row_ok & (inner[None, :] < left), other=0.0)"
STORE = "tl.store(c, total, mask=row_ok & column_ok)"
WHOLE_STEPS = {"range(0, k, BLOCK_K)": "range(0, k // BLOCK_K * BLOCK_K, BLOCK_K)"}
INNER_NOT_MASKED = {
    "row_ok & (inner[None, :] < left)": "row_ok",
    "(inner[:, None] < left) & column_ok": "column_ok",
}

_MATMUL = {
    "no_mask": {
        ", mask=row_ok & (inner[None, :] < left), other=0.0": "",
        ", mask=(inner[:, None] < left) & column_ok, other=0.0": "",
        ", mask=row_ok & column_ok": "",
    },
    "inner_not_masked": INNER_NOT_MASKED,
    "no_other": {", other=0.0": ""},
    "tail_dropped": INNER_NOT_MASKED | WHOLE_STEPS,
    "assumes_rows": {
        "rows[:, None] * stride_am + inner[None, :] * stride_ak": "rows[:, None] * k + inner",
        "inner[:, None] * stride_bk + columns[None, :] * stride_bn": "inner[:, None] * n + columns",
        "rows[:, None] * stride_cm + columns[None, :] * stride_cn": "rows[:, None] * n + columns",
        "BLOCK_K * stride_ak": "BLOCK_K",
        "BLOCK_K * stride_bk": "BLOCK_K * n",
    },
    "b_steps_along_columns": {"BLOCK_K * stride_bk": "BLOCK_K * stride_bn"},
    "tiles_swapped": {"tiles_n = tl.cdiv(n, BLOCK_N)": "tiles_n = tl.cdiv(m, BLOCK_M)"},
    "sums_in_half": {
        "dtype=tl.float32": "dtype=tl.float16",
        "total = tl.dot(x, y, total)": "total += tl.dot(x, y).to(tl.float16)",
    },
    "rounds_to_half": {"tl.store(c, total": "tl.store(c, total.to(a_ptr.dtype.element_ty)"},
    "last_step_only": {"tl.dot(x, y, total)": "tl.dot(x, y)"},
    "two_halves": {A_LOAD: f"{A_LOAD}\n        {A_LOAD}"},  # a's strip is read twice
}
_EPILOGUE = {
    "bias_not_masked": {BIAS: "tl.load(bias_ptr + columns)"},
    "bias_by_row": {
        "bias_ptr + columns, mask=columns < n": "bias_ptr + rows, mask=rows < m",
        "bias[None, :]": "bias[:, None]",
    },
    "relu_first": {
        "tl.maximum(total + bias[None, :], 0.0)": "tl.maximum(total, 0.0) + bias[None, :]"
    },
    "relu_every_step": {"tl.dot(x, y, total)": "tl.maximum(tl.dot(x, y, total), 0.0)"},
    "bias_every_step": {
        f"bias = {BIAS}": "pass",
        "total + bias[None, :]": "total",
        "tl.dot(x, y, total)": f"tl.dot(x, y, total) + {BIAS}[None, :]",
    },
    "no_relu": {"tl.maximum(total + bias[None, :], 0.0)": "total + bias[None, :]"},
    "through_memory": {
        "total = tl.maximum(total + bias[None, :], 0.0)": "pass",
        STORE: f"{STORE}\n    total = tl.load(c, mask=row_ok & column_ok, other=0.0)\n    "
        "total = tl.maximum(total + bias[None, :], 0.0)\n    " + STORE,
    },
}
_GEMV = {
    "no_mask": {
        ", mask=inside, other=0)": ")",
        ", mask=inner_ok, other=0.0)": ")",
        ", mask=row_ok, other=0.0)": ")",
        ", mask=row_ok)": ")",
    },
    "no_other": {"mask=inside, other=0)": "mask=inside)", "inner_ok, other=0.0": "inner_ok"},
    "tail_dropped": WHOLE_STEPS,
    "no_scale": {f"scale = {SCALE}": "pass", "total * scale": "total"},
    "one_scale": {SCALE: "tl.load(scale_ptr + tl.program_id(0) * BLOCK_N)"},
    "scale_every_step": {
        f"scale = {SCALE}": "pass",
        "total * scale": "total",
        "w * x[None, :], 1)": f"w * x[None, :], 1)\n        total *= {SCALE}",
    },
    "integer_x": {"other=0.0).to(tl.float32)": "other=0.0).to(tl.int8).to(tl.float32)"},
    "sums_in_half": {
        "dtype=tl.float32": "dtype=tl.float16",
        "w * x[None, :], 1)": "w * x[None, :], 1).to(tl.float16)",
        "total * scale": "total.to(tl.float32) * scale",
    },
    "x_for_every_row": {
        "x_ptr + inner, mask=inner_ok": "x_ptr + inner[None, :] + 0 * rows[:, None], "
        "mask=inner_ok[None, :] & (rows[:, None] >= 0)",
        "x[None, :]": "x",
    },
}
SLIPS = {
    "matmul": ("08.matmul_kernel", _MATMUL),
    "epilogue": ("08.matmul_bias_relu_kernel", _EPILOGUE),
    "gemv": ("08.int8_gemv_kernel", _GEMV),
}


@functools.cache
def __getattr__(name: str) -> Any:
    part, _, slip = name.partition("_")
    if part not in SLIPS or slip not in SLIPS[part][1]:
        raise AttributeError(name)
    return made(SLIPS[part][0], slip, SLIPS[part][1][slip])
