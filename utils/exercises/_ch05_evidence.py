"""Chapter 05: whether a difference is real, and a law with an honest interval."""

from __future__ import annotations

import statistics

import numpy as np

from .spec import Exercise, Mistake


def _verdict(difference, half, real=None):
    low, high = difference - half, difference + half
    real = (low > 0 or high < 0) if real is None else real
    return {"difference": difference, "low": low, "high": high, "real": real}


def _is_it_real(losses_a, losses_b, t):
    """The interval of the mean of paired differences (Student, 1908)."""
    d = np.asarray(losses_b) - np.asarray(losses_a)
    n = len(d)
    variance = (np.square(d).sum() - n * d.mean() ** 2) / (n - 1)
    return _verdict(float(d.mean()), float(t * np.sqrt(max(variance, 0.0) / n)))


T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}


def _is_it_real_cases(rng):
    def case(gap, noise, n, shared=0.3):
        """Pairs of runs: what a seed does to both, and what it does to each."""
        seed = shared * rng.normal(size=n)
        a = 2.3 + seed + noise * rng.normal(size=n)
        b = 2.3 + seed + noise * rng.normal(size=n) + gap
        return a.tolist(), b.tolist(), T95[n - 1]

    return [
        ([2.0, 2.2, 2.4], [1.91, 2.1, 2.29], 4.303),
        ([2.0, 2.2, 2.4], [2.1, 2.15, 2.5], 4.303),
        ([2.10, 2.11, 2.12], [2.02, 2.13, 2.00], 4.303),
        ([1.5, 1.75], [1.5, 1.75], 12.706),
        ([1.5, 1.75], [1.375, 1.625], 12.706),
        case(-0.5, 0.005, 3),
        case(0.3, 0.005, 5),
        case(0.0, 0.05, 4),
        case(-0.1, 0.2, 3),
    ]


def _pairs(a, b):
    return [y - x for x, y in zip(a, b, strict=True)]


def _real_like(spread=statistics.stdev, root=lambda n: n**0.5, t_of=lambda t: t, real=None):
    def answer(a, b, t):
        d = _pairs(a, b)
        mean = statistics.fmean(d)
        decided = None if real is None else real(a, b, mean)
        return _verdict(mean, t_of(t) * spread(d) / root(len(d)), decided)

    return answer


def _unpaired(a, b, t):
    half = t * ((statistics.variance(a) + statistics.variance(b)) / len(a)) ** 0.5
    return _verdict(statistics.fmean(b) - statistics.fmean(a), half)


def _turned(a, b, t):
    return _real_like()(b, a, t)


def _best_of(a, b, t):
    return _real_like()(a, b, t) | {"difference": min(b) - min(a)}


IS_IT_REAL = Exercise(
    id="05.is_it_real",
    points=3,
    minutes=10,
    difficulty=3,
    teaches="a difference counts when its interval, from paired seeds, excludes zero",
    cases=_is_it_real_cases,
    expect=_is_it_real,
    tolerance=1e-9,
    mistakes=[
        Mistake(
            _unpaired,
            "You spread the two variants apart. Runs with one seed share their start and their "
            "batches: take the differences seed by seed, and the spread of those.",
        ),
        Mistake(
            _real_like(spread=statistics.pstdev),
            "The standard deviation divides by n. With few seeds that is too kind: n - 1.",
        ),
        Mistake(
            _real_like(root=lambda n: 1),
            "This is the spread of single differences. The mean of n varies less, by √n.",
        ),
        Mistake(
            _real_like(t_of=lambda t: 1),
            "Without t the interval is one standard error, which misses the truth far too often.",
        ),
        Mistake(
            _turned,
            "The sign is turned round: the difference is b minus a, negative when b is better.",
        ),
        Mistake(
            _real_like(real=lambda a, b, mean: mean != 0),
            "Two means always differ. It is real when the interval excludes zero.",
        ),
        Mistake(
            _real_like(real=lambda a, b, mean: max(a) < min(b) or max(b) < min(a)),
            "The interval is right, but you decided by whether the two ranges overlap. Seeds move "
            "both variants together; ask whether the interval of the difference excludes zero.",
        ),
        Mistake(
            _real_like(real=lambda a, b, mean: mean < 0),
            "A worse loss is a real difference too, if its interval excludes zero.",
        ),
        Mistake(
            _best_of,
            "The difference of the best runs rewards luck. Take the mean over all seeds.",
        ),
    ],
    hints=[
        "What do two runs with the same seed have in common, and how do you cancel it?",
        "d = b - a for each seed. Its mean, its standard deviation s with n - 1, and t · s / √n "
        "on both sides.",
        "half = t * statistics.stdev(d) / math.sqrt(n); real = low > 0 or high < 0",
    ],
)


def _fit_scaling_law(sizes, losses, t, new_size):
    """Least squares in logarithms through the normal equations, and a new run's interval."""
    design = np.stack([np.ones(len(sizes)), np.log(sizes)], axis=1)
    y = np.log(losses)
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ design.T @ y
    left = y - design @ fitted
    new = np.array([1.0, np.log(new_size)])
    error = np.sqrt(left @ left / (len(y) - 2) * (1 + new @ inverse @ new))
    return {
        "exponent": -fitted[1],
        "prediction": np.exp(new @ fitted),
        "low": np.exp(new @ fitted - t * error),
        "high": np.exp(new @ fitted + t * error),
    }


def _law_cases(rng):
    def case(n, exponent, noise, factor=8.0, least=1e4):
        sizes = least * np.cumprod(rng.uniform(1.6, 3.0, n))
        losses = 12 * sizes**-exponent * np.exp(noise * rng.normal(size=n))
        return sizes.tolist(), losses.tolist(), T95[n - 2], float(sizes[-1] * factor)

    return [
        ([1e4, 2e4, 4e4, 8e4], [3.0, 2.8, 2.7, 2.5], 4.303, 2.4e5),
        ([1e3, 1e4, 1e6], [3.1, 2.9, 2.0], 12.706, 1e7),
        case(4, 0.08, 0.01, 4.0),
        case(4, 0.3, 0.02, 1.5),
        case(6, 0.05, 0.005, 100.0, 1e8),
        case(5, -0.1, 0.02, 0.01),
    ]


def _law_like(
    degrees=lambda n: n - 2,
    one=1.0,
    lever=True,
    sign=-1.0,
    through=(np.log, np.exp),
    root=np.sqrt,
    t_of=lambda t: t,
    end=None,
):
    def answer(sizes, losses, t, new_size):
        n, (into, out) = len(sizes), through
        x, y = np.log(sizes), into(np.asarray(losses))
        slope, start = np.polyfit(x, y, 1)
        left = y - start - slope * x
        s2 = float(np.square(left).sum()) / degrees(n)
        away = (np.log(new_size) - x.mean()) ** 2 / np.square(x - x.mean()).sum()
        half = t_of(t) * root(s2 * (one + (1 / n + away if lever else 0)))
        middle = start + slope * np.log(new_size)
        ends = (out(middle - half), out(middle + half))
        if end:
            ends = end(out(middle), half)
        return {
            "exponent": sign * slope,
            "prediction": out(middle),
            "low": ends[0],
            "high": ends[1],
        }

    return answer


FIT_SCALING_LAW = Exercise(
    id="05.fit_scaling_law",
    points=4,
    minutes=14,
    difficulty=4,
    teaches="a power law is a line in logarithms, and its prediction widens away from the data",
    cases=_law_cases,
    expect=_fit_scaling_law,
    tolerance=1e-7,
    mistakes=[
        Mistake(
            _law_like(degrees=lambda n: n),
            "Two numbers were fitted, so n - 2 points are left to show the scatter. You divided "
            "by n.",
        ),
        Mistake(
            _law_like(degrees=lambda n: n - 1),
            "Two numbers were fitted, not one: divide by n - 2.",
        ),
        Mistake(
            _law_like(one=0.0),
            "This is the interval of the line. A new run scatters around the line too: the 1 "
            "under the root is missing.",
        ),
        Mistake(
            _law_like(lever=False),
            "Your interval is as wide far away as at home. The line itself is uncertain, more so "
            "away from the mean of the data: 1/n + (x - mean)² / sum of squares.",
        ),
        Mistake(
            _law_like(sign=1.0),
            "The loss falls as N^(-b): the exponent is minus the slope.",
        ),
        Mistake(
            _law_like(through=(lambda y: y, lambda y: y)),
            "You fitted the loss itself against log N. A power law is a line when both are "
            "logarithms.",
        ),
        Mistake(
            _law_like(root=lambda x: x),
            "This is a variance. The interval needs its square root.",
        ),
        Mistake(
            _law_like(t_of=lambda t: 1),
            "Without t this is one standard error: a new run misses it far too often.",
        ),
        Mistake(
            _law_like(end=lambda middle, half: (middle - half, middle + half)),
            "The half-width is one of logarithms. Add it to log L and take exp of both ends.",
        ),
    ],
    hints=[
        "What does L = a · N^(-b) become when you take logarithms of both sides?",
        "A line through (log N, log L): slope = Sxy / Sxx. s² = squared residuals / (n - 2). At "
        "a new x the variance is s² · (1 + 1/n + (x - mean)² / Sxx).",
        "half = t * math.sqrt(s2 * (1 + 1/n + (x_new - x_mean)**2 / sxx)); low = "
        "math.exp(y_new - half)",
    ],
)
