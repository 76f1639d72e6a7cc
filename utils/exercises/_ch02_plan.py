"""Chapter 02's decisions: which layers to recompute, and which part to shrink first."""

from __future__ import annotations

from .spec import Exercise, Mistake

MODES = ("none", "selective", "full")


def _all_plans(n_layer, modes=MODES):
    plans = [{}]
    for mode in modes[:-1]:
        plans = [
            plan | {mode: count}
            for plan in plans
            for count in range(n_layer - sum(plan.values()) + 1)
        ]
    full = [plan | {modes[-1]: n_layer - sum(plan.values())} for plan in plans]
    return [{mode: plan.get(mode, 0) for mode in MODES} for plan in full]


def _peak(plan, kept, back=1):
    """Bytes all layers keep, and what the one that brings back most brings back."""
    brought_back = [kept["none"] - kept[mode] for mode in MODES if plan[mode]]
    return sum(kept[mode] * plan[mode] for mode in MODES) + back * max(brought_back)


def _flops(plan, flops):
    return sum(flops[mode] * plan[mode] for mode in MODES)


def _best(plans, kept, flops, budget_bytes, key=None, back=1):
    fit = [plan for plan in plans if _peak(plan, kept, back) <= budget_bytes]
    key = key or (lambda plan: (_flops(plan, flops), _peak(plan, kept, back)))
    return min(fit, key=key, default=None)


def _checkpoint_plan(n_layer, kept, flops, budget_bytes):
    """All plans, those that fit, the one that recomputes least."""
    return _best(_all_plans(n_layer), kept, flops, budget_bytes)


def _no_working_memory(n_layer, kept, flops, budget_bytes):
    return _best(_all_plans(n_layer), kept, flops, budget_bytes, back=0)


def _never_selective(n_layer, kept, flops, budget_bytes):
    return _best(_all_plans(n_layer, ("none", "full")), kept, flops, budget_bytes)


def _never_selective_no_working_memory(n_layer, kept, flops, budget_bytes):
    return _best(_all_plans(n_layer, ("none", "full")), kept, flops, budget_bytes, back=0)


def _never_full(n_layer, kept, flops, budget_bytes):
    return _best(_all_plans(n_layer, ("none", "selective")), kept, flops, budget_bytes)


def _all_or_nothing(n_layer, kept, flops, budget_bytes):
    plans = [dict.fromkeys(MODES, 0) | {mode: n_layer} for mode in MODES]
    return _best(plans, kept, flops, budget_bytes)


def _keeps_least(n_layer, kept, flops, budget_bytes):
    plans = _all_plans(n_layer)
    return _best(plans, kept, flops, budget_bytes, key=lambda plan: _peak(plan, kept))


def _fewest_layers(n_layer, kept, flops, budget_bytes):
    def touched(plan):
        return n_layer - plan["none"], _flops(plan, flops)

    return _best(_all_plans(n_layer), kept, flops, budget_bytes, key=touched)


def _higher_peak_of_equals(n_layer, kept, flops, budget_bytes):
    def key(plan):
        return _flops(plan, flops), -_peak(plan, kept)

    return _best(_all_plans(n_layer), kept, flops, budget_bytes, key=key)


def _greedy(n_layer, kept, flops, budget_bytes):
    steps = [{"none": n_layer - k, "selective": k, "full": 0} for k in range(n_layer + 1)]
    steps += [{"none": 0, "selective": n_layer - k, "full": k} for k in range(1, n_layer + 1)]
    return next((plan for plan in steps if _peak(plan, kept) <= budget_bytes), None)


def _plan_cases(rng):
    def case(n_layer, sizes, costs, budget):
        """The same puzzle in fresh units of bytes and FLOPs."""
        size, cost = int(rng.integers(10**5, 10**7)), int(rng.integers(10**8, 10**11))
        kept = {mode: size * n for mode, n in zip(MODES, sizes, strict=True)}
        flops = {mode: cost * n for mode, n in zip(MODES, costs, strict=True)}
        return n_layer, kept, flops, size * budget

    return [
        case(12, (114, 34, 2), (0, 4, 28), 12 * 114),  # all fits: recompute nothing
        case(12, (114, 34, 2), (0, 4, 28), 12 * 114 - 1),
        case(12, (114, 34, 2), (0, 4, 28), 900),
        case(12, (114, 34, 2), (0, 4, 28), 420),  # selective everywhere is not enough
        case(12, (114, 34, 2), (0, 4, 28), 12 * 2 + 112),  # full everywhere, to the byte
        case(12, (114, 34, 2), (0, 4, 28), 12 * 2 + 111),  # nothing fits
        case(1, (114, 34, 2), (0, 4, 28), 114),
        case(8, (100, 60, 10), (0, 6, 18), 540),  # one full is three selective: equal FLOPs
        case(7, (92, 84, 38), (0, 4, 16), 508),  # of equals, more full layers peak lower
        case(7, (106, 80, 30), (0, 1, 3), 559),  # of equals, fewer do
        case(10, (60, 40, 5), (0, 10, 21), 330),  # a full layer frees some selective ones
        case(int(rng.integers(14, 24)), (114, 34, 2), (0, 4, 28), int(rng.integers(500, 800))),
        case(int(rng.integers(14, 24)), (50, 34, 2), (0, 1, 25), int(rng.integers(300, 450))),
    ]


CHECKPOINT_PLAN = Exercise(
    id="02.checkpoint_plan",
    points=4,
    minutes=15,
    difficulty=3,
    teaches="the least recompute that fits, with room for the layer that is being recomputed",
    cases=_plan_cases,
    expect=_checkpoint_plan,
    tolerance=0,
    mistakes=[
        Mistake(
            _no_working_memory,
            "While a recomputed layer goes backward, all that it had dropped is there again. Leave "
            "room for one such layer.",
        ),
        Mistake(
            _never_selective,
            "No layer is selective here. Dropping only the attention matrix often frees most of "
            "the bytes for few FLOPs.",
        ),
        Mistake(
            _never_selective_no_working_memory,
            "Two things are missing: selective layers, which free much for few FLOPs, and room for "
            "what one layer brings back while it is recomputed.",
        ),
        Mistake(
            _never_full,
            "No layer is full here. Where selective recompute everywhere is not enough, some "
            "layers must drop everything.",
        ),
        Mistake(
            _all_or_nothing,
            "All layers are treated alike. Recompute only as many as needed; the others stay.",
        ),
        Mistake(
            _keeps_least,
            "This plan keeps the fewest bytes. Asked is the one that recomputes the fewest FLOPs "
            "and still fits.",
        ),
        Mistake(
            _fewest_layers,
            "This plan touches the fewest layers. What costs time is FLOPs: several selective "
            "layers can be cheaper than one full.",
        ),
        Mistake(
            _higher_peak_of_equals,
            "Two plans recompute equally many FLOPs here. Of those, the one with the lower peak is "
            "asked, not the one that your loops meet first or last.",
        ),
        Mistake(
            _greedy,
            "Selective first, then full, is not always least: once a layer is full, some selective "
            "layers may keep everything again. Try all numbers of both.",
        ),
    ],
    hints=[
        "A plan is two numbers, how many layers are full and how many selective. How many such "
        "plans are there for n_layer layers?",
        "Loop over both numbers. For each plan compute its bytes and its FLOPs, keep the cheapest "
        "of those that fit. The bytes include what the neediest mode in use brings back.",
        "used = [m for m in plan if plan[m]]; peak = sum(plan[m] * kept[m] for m in plan) + "
        "kept['none'] - min(kept[m] for m in used); compare (recomputed FLOPs, peak)",
    ],
)


def _what_does_not_fit(memory_bytes, parts, left):
    """Nothing, the part whose remedy frees most, or the card."""
    total = sum(parts.values())
    if total <= memory_bytes:
        return "nothing"
    frees = {part: size * (1 - left.get(part, 1)) for part, size in parts.items()}
    if total - sum(frees.values()) > memory_bytes:
        return "card"
    return sorted(frees, key=frees.get)[-1]


def _largest_part(memory_bytes, parts, left):
    right = _what_does_not_fit(memory_bytes, parts, left)
    return max(parts, key=parts.get) if right in parts else right


def _strongest_remedy(memory_bytes, parts, left):
    right = _what_does_not_fit(memory_bytes, parts, left)
    return min(left, key=left.get) if right in parts else right


def _largest_that_has_a_remedy(memory_bytes, parts, left):
    right = _what_does_not_fit(memory_bytes, parts, left)
    return max(left, key=parts.get) if right in parts else right


def _each_alone(memory_bytes, parts, left):
    fits = max(parts.values()) <= memory_bytes
    return "nothing" if fits else _what_does_not_fit(memory_bytes, parts, left)


def _never_the_card(memory_bytes, parts, left):
    right = _what_does_not_fit(memory_bytes, parts, left)
    return max(left, key=lambda p: parts[p] * (1 - left[p])) if right == "card" else right


def _never_asks(memory_bytes, parts, left):
    return max(left, key=lambda part: parts[part] * (1 - left[part]))


def _always_the_largest(memory_bytes, parts, left):
    return max(parts, key=parts.get)


def _one_remedy_must_do(memory_bytes, parts, left):
    right = _what_does_not_fit(memory_bytes, parts, left)
    if right not in parts:
        return right
    freed = parts[right] * (1 - left[right])
    return right if sum(parts.values()) - freed <= memory_bytes else "card"


def _fit_cases(rng):
    def case(memory, parts, left, names=("weights", "gradients", "optimizer", "activations")):
        """The same puzzle in a fresh unit, a power of two so that sums stay exact."""
        unit = 2 ** int(rng.integers(24, 34)) * int(rng.integers(1, 50))
        parts = {name: unit * size for name, size in zip(names, parts, strict=True)}
        return unit * memory, parts, dict(left)

    adam8, selective = {"optimizer": 0.5}, {"activations": 0.25}
    both = adam8 | selective
    return [
        case(80, (8, 8, 24, 40), both),  # fits to the byte
        case(79, (8, 8, 24, 40), both),
        case(60, (8, 8, 48, 24), adam8 | {"activations": 0.0625}),
        case(70, (8, 8, 40, 30), adam8 | {"activations": 0.125}),  # not the largest part
        case(50, (8, 8, 60, 20), {"optimizer": 0.75, "activations": 0.5}),
        case(40, (60, 8, 24, 12), both),  # weights have no remedy: the card
        case(64, (4, 4, 12, 50), both),
        case(44, (8, 8, 24, 40), both),  # both remedies together
        case(38, (8, 8, 24, 40), both),  # both together, to the byte
        case(37, (8, 8, 24, 40), both),  # not even both
        case(100, (60, 8, 40, 30), adam8 | {"activations": 0.125}),
        case(100, (64, 16, 32, 8), {"gradients": 0.5, "optimizer": 0.5}),  # weights are largest
        case(20, (16, 30), {"cache": 0.5, "weights": 0.25}, ("weights", "cache")),
        case(30, (16, 30), {"cache": 0.5, "weights": 0.25}, ("weights", "cache")),
        case(int(rng.integers(60, 79)), (8, 8, 24, 40), both),
    ]


WHAT_DOES_NOT_FIT = Exercise(
    id="02.what_does_not_fit",
    points=2,
    minutes=8,
    difficulty=2,
    teaches="shrink first what frees the most bytes, which need not be the largest part",
    cases=_fit_cases,
    expect=_what_does_not_fit,
    tolerance=0,
    mistakes=[
        Mistake(
            _largest_part,
            "This is the largest part. What counts is how much its remedy frees: "
            "bytes · (1 - left).",
        ),
        Mistake(
            _strongest_remedy,
            "This is the remedy that shrinks its part most. A small part frees few bytes, however "
            "much it shrinks.",
        ),
        Mistake(
            _largest_that_has_a_remedy,
            "This is the largest part that has a remedy. A smaller part with a stronger remedy can "
            "free more bytes.",
        ),
        Mistake(
            _each_alone,
            "Each part alone may fit. They are in memory together: compare their sum.",
        ),
        Mistake(
            _never_the_card,
            'Where all remedies together are not enough, the answer is "card".',
        ),
        Mistake(
            _one_remedy_must_do,
            'One remedy need not be enough. The answer is "card" only when all of them together '
            "are not.",
        ),
        Mistake(
            _never_asks,
            'Ask first whether anything must shrink ("nothing") and whether shrinking can help '
            '("card").',
        ),
        Mistake(
            _always_the_largest,
            "This always names the largest part. Ask first whether the sum fits, then whether the "
            "remedies are enough, then which of them frees most.",
        ),
    ],
    hints=[
        "First question: is there a problem at all? Second: can the remedies solve it?",
        "A part that has a remedy frees parts[name] · (1 - left[name]) bytes. Add them up before "
        "you choose one.",
        'frees = {name: parts[name] * (1 - left[name]) for name in left}; "nothing", "card", or '
        "max(frees, key=frees.get)",
    ],
)
