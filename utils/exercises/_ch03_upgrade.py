"""Specification of chapter 03's last exercise: which of two upgrades helps a workload."""

from __future__ import annotations

from fractions import Fraction

from .spec import Exercise, Mistake


def _seconds(steps, peak, slope):
    return sum(max(Fraction(f) / Fraction(peak), Fraction(b) / Fraction(slope)) for f, b in steps)


def _bigger(steps, peak_flops_per_s, bytes_per_s, peak_factor, bandwidth_factor):
    """Time the workload on three machines."""
    now = _seconds(steps, peak_flops_per_s, bytes_per_s)
    more_flops = Fraction(peak_flops_per_s) * Fraction(peak_factor)
    more_bytes = Fraction(bytes_per_s) * Fraction(bandwidth_factor)
    return _choice(
        now / _seconds(steps, more_flops, bytes_per_s),
        now / _seconds(steps, peak_flops_per_s, more_bytes),
    )


def _choice(bigger, better_fed):
    names = {True: "bigger", False: "better_fed"}
    choose = "same" if bigger == better_fed else names[bigger > better_fed]
    return {"bigger": bigger, "better_fed": better_fed, "choose": choose}


def _bigger_like(seconds):
    """An answer from a wrong idea of how long steps take: seconds(steps, peak, slope)."""

    def answer(steps, peak, slope, more_peak, more_slope):
        now = seconds(steps, peak, slope)
        return _choice(
            now / seconds(steps, peak * more_peak, slope),
            now / seconds(steps, peak, slope * more_slope),
        )

    return answer


def _by_side(steps, peak, slope, more_peak, more_slope):
    bound = sum(f for f, _ in steps) / peak > sum(b for _, b in steps) / slope
    return _choice(more_peak if bound else 1, 1 if bound else more_slope)


def _mean_speedup(steps, peak, slope, more_peak, more_slope):
    def mean(new_peak, new_slope):
        ratios = [max(f / peak, b / slope) / max(f / new_peak, b / new_slope) for f, b in steps]
        return sum(ratios) / len(ratios)

    return _choice(mean(peak * more_peak, slope), mean(peak, slope * more_slope))


def _random_steps(rng):
    """Five steps on both sides of a ridge of 250, of unlike lengths."""
    ridge = rng.choice([0.02, 0.7, 1.4, 20], 5, replace=True) * 250
    sizes = 10 ** rng.uniform(8, 11, 5)
    return [[float(r * n), float(n)] for r, n in zip(ridge, sizes, strict=True)]


BIGGER_OR_BETTER_FED = Exercise(
    id="03.bigger_or_better_fed",
    points=2,
    minutes=8,
    difficulty=3,
    teaches="an upgrade speeds up only the steps that wait for it, and only to the other limit",
    cases=lambda rng: [
        ([[1e12, 1e10], [4e15, 2e10], [1e12, 3e10]], 989.4e12, 3.35e12, 2.0, 1.4),
        ([[2.0**48, 2.0**40]], 2.0**48, 2.0**40, 3.0, 2.0),
        ([[3e11, 1e9], [1e11, 1e10]], 250e12, 1e12, 4.0, 4.0),
        ([[6e14, 1e9]], 312e12, 2.039e12, 3.2, 1.6),
        ([[1e14, 1e9], [1e9, 1e12]], 1e14, 1e12, 2.0, 2.004),  # nearly the same is not the same
        *(
            (_random_steps(rng), 250e12, 1e12, float(a), float(b))
            for a, b in zip(rng.uniform(1.2, 3, 4), rng.uniform(1.2, 3, 4), strict=True)
        ),
    ],
    expect=_bigger,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            lambda steps, peak, slope, a, b: _choice(a, b),
            "These are the factors on the price list. A step that waits for bytes gains nothing "
            "from FLOPs, and the reverse.",
        ),
        Mistake(
            _bigger_like(
                lambda steps, peak, slope: max(
                    sum(f for f, _ in steps) / peak, sum(b for _, b in steps) / slope
                )
            ),
            "You added up all FLOPs and all bytes first. The steps run one after another: take the "
            "slower side of each step, then add.",
        ),
        Mistake(
            _bigger_like(lambda steps, peak, slope: sum(f / peak + b / slope for f, b in steps)),
            "You added the two times of a step. They overlap: a step takes the longer one.",
        ),
        Mistake(
            _by_side,
            "The side that limits today gets the whole factor only until the other side limits. "
            "Time every step again with the new machine.",
        ),
        Mistake(
            _mean_speedup,
            "Speedups of steps do not average: a short step counts less. Divide the total time "
            "before by the total time after.",
        ),
    ],
    hints=[
        "How long does the workload take today, step by step?",
        "A step takes max(flops/peak, bytes/bandwidth). Add the steps. Do it for three machines: "
        "today's, with the larger peak, with the larger bandwidth.",
        "total = lambda peak, bw: sum(max(f / peak, b / bw) for f, b in steps); a speedup is "
        "total(today) / total(upgraded)",
    ],
)
