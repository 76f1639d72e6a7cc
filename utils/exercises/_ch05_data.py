"""Chapter 05: batches that cross no file, and the loss."""

from __future__ import annotations

import numpy as np

from ._ch05_drive import drive_cross_entropy, drive_get_batch
from .spec import Exercise, Mistake


def _targets_of(tokens, first, seq_len):
    rows = np.stack([tokens[f : f + seq_len + 1] for f in first]).astype(np.int64)
    return rows[:, :-1], rows[:, 1:]


def _get_batch(tokens, ends, seq_len, u):
    """List every window of every file, then pick."""
    windows, start = [], 0
    for end in ends.tolist():
        windows += [s for s in range(start, end + 1) if s + seq_len <= end]
        start = end + 1
    first = [windows[int(x * len(windows))] for x in u.tolist()]
    x, y = _targets_of(tokens, first, seq_len)
    return {"x": x, "y": y, "dtype": "torch.int64 torch.int64"}


def _files(rng, lengths):
    """Files of these lengths, each closed by a zero; where the zeros are."""
    parts = [np.append(rng.integers(1, 256, size=n), 0) for n in lengths]
    ends = np.cumsum([len(part) for part in parts]) - 1
    return np.concatenate(parts).astype(np.uint8), ends.astype(np.int64)


def _get_batch_cases(rng):
    def case(lengths, seq_len, u):
        return *_files(rng, lengths), seq_len, np.array(u)

    some = np.linspace(0.02, 0.98, 16)
    return [
        case([9, 4, 30], 5, some),
        case([9, 4, 30], 5, [0.0, 1 - 2.0**-40]),  # the last one is 1 in float32
        case([2, 14, 1, 8], 4, [*some, 0.0, 0.999999]),
        case([6], 6, [0.3]),
        case([12, 12], 1, rng.random(8)),
        case([int(n) for n in rng.integers(5, 40, 6)], 7, [*some, *rng.random(8)]),
    ]


def batch_like(count=lambda length, n: length - n + 1, shift=1, roll=False, dtype=True):
    """A batch with one thing wrong. count: windows of a file of that length."""

    def answer(tokens, ends, seq_len, u):
        import torch

        windows, start = [], 0
        for end in ends.tolist():
            windows += range(start, start + max(0, count(end - start, seq_len)))
            start = end + 1
        first = torch.tensor([windows[int(x * len(windows))] for x in u.tolist()])
        where = first[:, None] + torch.arange(seq_len)
        tokens = torch.cat([tokens, tokens])  # a mistake may look past the end
        x, y = tokens[where], tokens[where + shift]
        if roll:
            y = x.roll(-1, 1)
        return (x.long(), y.long()) if dtype else (x, y)

    return answer


def _across_files(tokens, ends, seq_len, u):
    return batch_like()(tokens, ends[-1:], seq_len, u)


def _each_file_alike(tokens, ends, seq_len, u):
    import torch

    starts = [0, *(ends[:-1] + 1).tolist()]
    long = [(s, e) for s, e in zip(starts, ends.tolist(), strict=True) if e - s >= seq_len]
    first = []
    for x in u.tolist():
        number, rest = divmod(x * len(long), 1)
        start, end = long[int(number)]
        first.append(start + int(rest * (end - start - seq_len + 1)))
    rows = tokens[torch.tensor(first)[:, None] + torch.arange(seq_len + 1)].long()
    return rows[:, :-1], rows[:, 1:]


GET_BATCH = Exercise(
    id="05.get_batch",
    points=3,
    minutes=12,
    difficulty=3,
    teaches="the target is the input moved on by one, and a window stays inside its file",
    cases=_get_batch_cases,
    expect=_get_batch,
    drive=drive_get_batch,
    tolerance=0,
    mistakes=[
        Mistake(
            batch_like(shift=0),
            "The target is the input itself. A model learns to copy that in seconds and predicts "
            "nothing: y is x moved on by one byte.",
        ),
        Mistake(
            batch_like(shift=2),
            "The target is two bytes ahead. It is the very next one.",
        ),
        Mistake(
            batch_like(roll=True),
            "The last target of each row is the row's first byte, as torch.roll makes it. Read "
            "one byte more from the file instead.",
        ),
        Mistake(
            _across_files,
            "Some windows run from one file into the next. Nothing before the zero tells what "
            "comes after it. Only windows inside one file count.",
        ),
        Mistake(
            batch_like(count=lambda length, n: length - n),
            "The last window of each file is missing: the closing zero may be the last target. A "
            "file of n bytes has n - seq_len + 1 windows.",
        ),
        Mistake(
            batch_like(count=lambda length, n: length - n + 2 if length >= n else 0),
            "A file has one window too many: its last target is the next file's first byte. A "
            "file of n bytes has n - seq_len + 1 windows.",
        ),
        Mistake(
            _each_file_alike,
            "You draw a file first and then a window in it, so a byte in a short file is seen "
            "more often than one in a long file. Number all windows of all files, and draw one.",
        ),
        Mistake(
            batch_like(dtype=False),
            "The bytes are right, but still uint8. An embedding wants int64: call .long().",
        ),
    ],
    hints=[
        "How many windows does a file of n bytes have, if the closing zero may be the last "
        "target? How do you number the windows of all files?",
        "windows = (ends - starts - seq_len + 1).clamp(min=0); their cumsum says in which file "
        "window number floor(u * total) lies, and how far inside.",
        "file = torch.searchsorted(up_to, drawn, right=True); first = starts[file] + drawn - "
        "(up_to - windows)[file]; rows = tokens[first[:, None] + torch.arange(seq_len + 1)].long()",
    ],
)


def _cross_entropy(logits, targets):
    """In float64 with numpy, one position after the other."""
    logits = logits.astype(np.float64)
    gradient, total = np.zeros_like(logits), 0.0
    for b, t in np.ndindex(targets.shape):
        row = logits[b, t] - logits[b, t].max()
        total += np.log(np.exp(row).sum()) - row[targets[b, t]]
        gradient[b, t] = np.exp(row) / np.exp(row).sum()
        gradient[b, t, targets[b, t]] -= 1
    return {"loss": total / targets.size, "gradient": gradient / targets.size}


def _cross_entropy_cases(rng):
    def case(batch, seq_len, vocab_size, scale=2.0, dtype=np.float32):
        logits = (scale * rng.normal(size=(batch, seq_len, vocab_size))).astype(dtype)
        return logits, rng.integers(0, vocab_size, size=(batch, seq_len))

    sure, wrong = np.zeros((1, 2, 5), np.float32), np.array([[3, 1]])
    sure[..., 0] = 200.0
    return [
        case(2, 3, 5),
        case(1, 1, 7),
        case(3, 2, 256),
        case(2, 4, 6, dtype=np.float64),
        case(2, 3, 9, scale=400.0),
        (sure, wrong),
        case(int(rng.integers(1, 4)), int(rng.integers(2, 6)), int(rng.integers(2, 30))),
    ]


def _picked(logits, targets):
    return logits.gather(-1, targets[..., None])[..., 0]


def loss_like(log_p=lambda x: x.log_softmax(-1), end=lambda chosen: -chosen.mean()):
    """A loss from its log-probabilities, and what is made of those of the targets."""
    return lambda logits, targets: end(_picked(log_p(logits), targets))


def _overflowing(x):
    return (x.exp() / x.exp().sum(-1, keepdim=True)).log()


def _moved_again(logits, targets):
    if targets.shape[1] == 1:
        return logits.sum() * 0
    return loss_like()(logits[:, :-1], targets[:, 1:])


CROSS_ENTROPY = Exercise(
    id="05.cross_entropy",
    points=3,
    minutes=10,
    difficulty=2,
    teaches="mean negative log-probability of what came next, from logits of any size",
    cases=_cross_entropy_cases,
    expect=_cross_entropy,
    drive=drive_cross_entropy,
    tolerance=1e-5,
    mistakes=[
        Mistake(
            loss_like(_overflowing),
            "exp of a large logit overflows, and the log of 0 is -infinity. Subtract the row's "
            "maximum and stay in logarithms: log p = logit - logsumexp.",
        ),
        Mistake(
            loss_like(lambda x: (x.softmax(-1) + 1e-9).log()),
            "The small number inside the log hides how wrong a sure and wrong model is, and "
            "stops its gradient. Stay in logarithms instead: logit - logsumexp.",
        ),
        Mistake(
            loss_like(end=lambda chosen: -chosen.sum()),
            "This is the sum over all targets. Take the mean, or the loss grows with the batch.",
        ),
        Mistake(
            loss_like(end=lambda chosen: -chosen.sum() / len(chosen)),
            "You divided by the number of sequences. Divide by the number of targets, "
            "batch · seq_len.",
        ),
        Mistake(
            loss_like(end=lambda chosen: -chosen.mean() / np.log(2)),
            "This is in bits. Nats use the natural logarithm.",
        ),
        Mistake(
            loss_like(lambda x: x.log_softmax(1)),
            "The softmax runs over the positions. It runs over the vocabulary, the last axis.",
        ),
        Mistake(
            loss_like(end=lambda chosen: chosen.mean()),
            "The sign is wrong: the loss is minus the mean log-probability, so it is positive.",
        ),
        Mistake(
            loss_like(end=lambda chosen: -(chosen.logsumexp((0, 1)) - np.log(chosen.numel()))),
            "This is the log of the mean probability. Take the logarithm of each first, then the "
            "mean.",
        ),
        Mistake(
            loss_like(lambda x: x),
            "The logit alone is no log-probability: subtract the logsumexp of its row.",
        ),
        Mistake(
            _moved_again,
            "You moved the targets on by one again. get_batch did that already.",
        ),
        Mistake(
            lambda logits, targets: loss_like()(logits.detach(), targets),
            "The loss is right, but no gradient flows back. Use torch operations on logits as "
            "they come, without detach, no_grad or item.",
        ),
    ],
    hints=[
        "What is the logarithm of a softmax, written without a division?",
        "log p = logit of the target - logsumexp of its row. gather picks the target's logit.",
        "picked = logits.gather(-1, targets[..., None])[..., 0]; "
        "(logits.logsumexp(-1) - picked).mean()",
    ],
)
