"""The text: no window crosses a file, y is x moved on, and the split is the same everywhere."""

import sys

import numpy as np
import pytest
import torch

from utils import answers_folder
from utils.lab import get_batch, is_held_out, stdlib_text, text_from_files
from utils.lab.data import END_OF_FILE


@pytest.fixture(scope="module")
def library():
    return stdlib_text()


def small_split(*lengths):
    """Files whose bytes tell where they are from: file 0 is all 1, file 1 all 2, ..."""
    files = {f"{i}.py": bytes([i + 1]) * n for i, n in enumerate(lengths)}
    return text_from_files(files, {"v.py": b"abc"}, "small").train


def draw(split, batch, seq_len, seed=0):
    return get_batch(split, batch, seq_len, torch.Generator().manual_seed(seed))


def test_a_window_lies_inside_one_file():
    x, y = draw(small_split(5, 30, 9, 12), 2000, 8)
    assert (x == x[:, :1]).all()
    assert (y[:, :-1] == x[:, :1]).all()
    assert set(x[:, 0].tolist()) == {2, 3, 4}  # file 0 is too short for a window of 8


def test_y_is_x_moved_on_by_one():
    content = bytes(range(1, 250))
    x, y = draw(text_from_files({"a.py": content}, {"b.py": b"x"}, "t").train, 500, 16)
    assert x.shape == y.shape == (500, 16) and x.dtype == y.dtype == torch.int64
    assert torch.equal(x[:, 1:], y[:, :-1])
    last = y[:, -1]
    assert ((last == x[:, -1] + 1) | ((last == END_OF_FILE) & (x[:, -1] == 249))).all()


def test_every_window_is_equally_likely_from_the_first_to_the_last():
    content = bytes(range(1, 21))
    split = text_from_files({"a.py": content, "c.py": content}, {"b.py": b"x"}, "t").train
    x, y = draw(split, 17_000, 4)
    counts = torch.bincount(x[:, 0], minlength=21)[1:]
    assert (counts[:17] > 800).all() and not counts[17:].any()  # starts 1 to 17, 1,000 each
    assert (y[x[:, 0] == 17, -1] == END_OF_FILE).all()


def test_batches_come_from_the_generator_alone(library):
    torch.manual_seed(1)
    first = draw(library.train, 4, 32, seed=7)
    torch.manual_seed(2)
    assert all(map(torch.equal, first, draw(library.train, 4, 32, seed=7)))
    assert not torch.equal(first[0], draw(library.train, 4, 32, seed=8)[0])


def test_a_window_longer_than_every_file_is_refused():
    with pytest.raises(ValueError, match="seq_len is 31; allowed: at most 30"):
        draw(small_split(5, 30), 1, 31)
    assert draw(small_split(5, 30), 1, 30)[0].shape == (1, 30)
    with pytest.raises(ValueError, match="batch is 0"):
        draw(small_split(5), 0, 2)


def test_the_split_is_disjoint_and_decided_by_the_path(library):
    train, val = set(library.train.files), set(library.val.files)
    assert not train & val
    assert not any(map(is_held_out, train)) and all(map(is_held_out, val))
    assert not {library.train.file(i) for i in range(len(train))} & {
        content for i in range(len(val)) if len(content := library.val.file(i)) > 100
    }
    share = len(library.val.tokens) / len(library.train.tokens)
    assert 0.03 < share < 0.3


def test_known_paths_stay_on_their_side():
    """Pinned: another hash or another modulus would silently change every published loss."""
    assert [is_held_out(p) for p in ("ast.py", "pydoc.py", "random.py", "json/decoder.py")] == [
        True,
        True,
        True,
        False,
    ]


def test_the_library_is_python_source_and_nothing_that_some_readers_lack(library):
    files = library.train.files + library.val.files
    assert list(library.train.files) == sorted(library.train.files)
    assert len(library.train.tokens) > 4_000_000
    assert {"argparse.py", "asyncio/events.py"} <= set(files)
    tops = {path.split("/")[0].removesuffix(".py") for path in files}
    assert tops <= sys.stdlib_module_names
    assert not tops & {"idlelib", "tkinter", "distutils", "lib2to3", "ensurepip", "test"}
    assert not any("/tests/" in path or "site-packages" in path for path in files)
    number = library.train.files.index("argparse.py")
    compile(library.train.file(number), "argparse.py", "exec")
    assert b"\r\n" not in library.train.file(number)


def test_the_text_is_memory_mapped_and_found_again(library):
    (cache,) = (answers_folder() / "text").glob("stdlib-*-train-*.bin")
    written = cache.stat().st_mtime_ns
    again = stdlib_text()
    assert cache.stat().st_mtime_ns == written
    assert torch.equal(again.train.tokens, library.train.tokens)
    assert cache.read_bytes() == library.train.tokens.numpy().tobytes()


@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_damaged_cache_is_written_again(library, damage, monkeypatch, tmp_path):
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path))
    stdlib_text()
    (cache,) = (tmp_path / "text").glob("stdlib-*-val-*.bin")
    whole = cache.read_bytes()
    cache.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    again = stdlib_text()
    assert np.array_equal(again.val.tokens.numpy(), np.frombuffer(whole, dtype=np.uint8))
    assert [p.suffix for p in (tmp_path / "text").iterdir()] == [".bin", ".bin"]


def test_a_python_without_its_source_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("utils.lab.data.sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(ValueError, match="came without it"):
        stdlib_text()
