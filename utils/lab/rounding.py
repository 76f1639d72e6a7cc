"""Round tensors to a number format without having it: float32 in, float32 that the format holds
out. Equal, bit for bit, to a cast to PyTorch's dtype and back where PyTorch has the dtype.

The power of two below a number is its float32 with the mantissa cleared. It gives the spacing of
the format there, and the rest is to count spacings. All steps but the rounding are exact.

One exception: between 2^-127 and 1.5 * 2^-127 PyTorch's cast to E8M0 goes up to 2^-126, which is
not the nearest. Here, as everywhere else, the nearest is taken.
"""

import torch

from utils.arithmetic.checks import choice, refuse, whole
from utils.arithmetic.formats import FORMATS, OVERFLOWS, Format, number_format

ROUNDINGS = ("nearest", "stochastic")
_FP32_MAX = torch.finfo(torch.float32).max
_EXPONENT = 0x7F800000  # the exponent field of a float32


def round_to_format(
    x: torch.Tensor,
    name: str | Format,
    *,
    overflow: str = "special",
    rounding: str = "nearest",
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Each element as the number of the format that it rounds to. Same shape, float32.

    x: float32, any shape and device
    overflow: "special" gives infinity or NaN past the largest number, "saturate" the largest
      number; see formats.round_nearest
    rounding: "nearest" takes ties to even; "stochastic" goes up with the probability that makes
      the mean right, (x - below) / (above - below), drawn from generator
    NaN stays NaN, also where the format has none, so that it is seen. E8M0 ignores signs, as
    PyTorch does. Raises ValueError naming a wrong argument.

    >>> round_to_format(torch.tensor([0.3952, 500.0]), "E4M3", overflow="saturate")
    tensor([  0.4062, 448.0000])
    """
    form = number_format(name)
    choice("overflow", overflow, OVERFLOWS)
    choice("rounding", rounding, ROUNDINGS)
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
        raise refuse("x", getattr(x, "dtype", x), "a float32 tensor")
    x = x.detach().contiguous()
    if not form.signed:
        x = x.abs()
    if form.eps <= torch.finfo(torch.float32).eps:
        return _past_the_end(x, x, form, overflow)
    finite = x.clamp(-_FP32_MAX, _FP32_MAX)
    power = (finite.view(torch.int32) & _EXPONENT).view(torch.float32)  # 2^e <= |x|
    spacing = power.clamp(min=form.min_normal) * form.eps
    steps = finite / spacing
    if rounding == "nearest":
        rounded = steps.round() * spacing
    else:
        below = steps.floor()
        noise = torch.rand(x.shape, generator=generator, device=x.device)
        rounded = torch.copysign((below + (noise < steps - below)) * spacing, x)
    if not form.signed:
        rounded = rounded.clamp(min=form.min_normal)
    rounded = _past_the_end(x, rounded, form, overflow)
    if form.specials == "nan at -0":
        rounded = rounded + 0.0  # -0 becomes 0
    return rounded


def cast(x: torch.Tensor, name: str | Format) -> torch.Tensor:
    """x in PyTorch's own dtype of that name and back, float32. Past the largest number it does as
    this version of PyTorch does. Raises ValueError when there is no such dtype.

    >>> cast(torch.tensor([0.3952]), "E4M3")
    tensor([0.4062])
    """
    form = number_format(name)
    if not form.torch_dtype:
        known = " or ".join(f'"{one.name}"' for one in FORMATS.values() if one.torch_dtype)
        raise refuse("name", form.name, f"{known}: PyTorch has no dtype for this one")
    return x.to(getattr(torch, form.torch_dtype)).float()


def quantize_per_block(
    x: torch.Tensor,
    name: str | Format,
    block: int | None,
    *,
    power_of_two: bool = True,
    rounding: str = "nearest",
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x rounded to a format with one scale a block, and the scales.

    x: float32 (..., n); block: elements of the last dimension that share a scale, a divisor of
      n; None: the whole tensor shares one
    power_of_two: scales as E8M0 has them; the block's largest magnitude then lands in the upper
      half of the format's range, else exactly at its end
    Returns (values, scales): float32 values of x's shape, scaled back, and (..., n / block)
    scales by which elements were divided. A block of zeros has the scale 1.
    Raises ValueError when block does not divide n.
    """
    form = number_format(name)
    if block is not None and x.shape[-1] % whole("block", block):
        raise refuse("block", block, f"a divisor of the last dimension, {x.shape[-1]}")
    blocks = x.unflatten(-1, (-1, block)) if block else x.reshape(1, -1)
    amax = blocks.abs().amax(-1, keepdim=True)
    scales = torch.where(amax > 0, amax / form.max_finite, 1.0)
    if power_of_two:
        mantissa, exponent = torch.frexp(scales)  # scales = mantissa * 2^exponent, 0.5 <= it < 1
        scales = torch.ldexp(torch.ones_like(scales), exponent - (mantissa == 0.5).int())
    blocks = blocks / scales
    if rounding == "nearest" and form.torch_dtype:
        rounded = cast(blocks.clamp(-form.max_finite, form.max_finite), form)
    else:
        rounded = round_to_format(
            blocks, form, overflow="saturate", rounding=rounding, generator=generator
        )
    values = (rounded * scales).reshape(x.shape)
    return values, scales.squeeze(-1) if block else scales.reshape(())


def quantize_int8(x: torch.Tensor, dim: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole numbers from -127 to 127 as int8, and the scale that turns them back.

    dim: the dimension that shares a scale (-1: one scale for each row); None: all share one
    x is about q * scale. Zeros have the scale 1.
    """
    amax = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    scale = torch.where(amax > 0, amax / 127, 1.0)
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def _past_the_end(
    x: torch.Tensor, rounded: torch.Tensor, form: Format, overflow: str
) -> torch.Tensor:
    end = form.max_finite
    if overflow == "saturate" or form.specials == "none":
        rounded = rounded.clamp(-end, end)
    else:
        past = torch.inf if form.has_infinity else torch.nan
        rounded = torch.where(rounded.abs() > end, torch.copysign(x.new_tensor(past), x), rounded)
    return torch.where(x.isnan(), x, rounded)
