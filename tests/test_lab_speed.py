"""What the speed comparison compares: the same model, the same work. Never how fast."""

import subprocess
import sys

import pytest
import torch

from tests.compare_plain_loop import compare
from tests.plain_gpt import PlainGPT
from utils import ROOT
from utils.arithmetic import ModelShape
from utils.lab import GPT, next_token_loss
from utils.lab.memory import keep_freed_memory

NAMES = {
    "token_embedding": "wte",
    "position_embedding": "wpe",
    "blocks": "h",
    "norm_1": "ln_1",
    "norm_2": "ln_2",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feed_forward.up": "mlp.0",
    "feed_forward.down": "mlp.2",
    "head.": "lm_head.",
}


@pytest.mark.parametrize("bias", [False, True])
def test_the_plain_gpt_is_the_same_model(bias):
    shape = ModelShape(2, 32, 4, 50, seq_len=9, bias=bias)
    ours, plain = GPT(shape), PlainGPT(2, 32, 4, 50, 9, bias)
    state = {}
    for name, value in ours.state_dict().items():
        for mine, theirs in NAMES.items():
            name = name.replace(mine, theirs)
        state[name.replace("norm.", "ln_f.") if name.startswith("norm.") else name] = value
    plain.load_state_dict(state)  # strict: every weight of the one is one of the other
    tokens = torch.arange(36).view(4, 9) % 50
    targets = (tokens * 7 + 1) % 50
    assert torch.allclose(plain(tokens, targets), next_token_loss(ours(tokens), targets))


def test_the_c_library_is_asked_where_there_is_one_to_ask(monkeypatch):
    assert keep_freed_memory() in (True, False)
    monkeypatch.setattr("utils.lab.memory.platform.system", lambda: "Darwin")
    assert keep_freed_memory() is False


# The sizes of the parts of the heap that have VmFlags "hg", and whether this system tells at all.
ASK_TWICE = r"""
import os, re
from utils.lab.memory import keep_freed_memory
large_pages = os.path.isdir("/sys/kernel/mm/transparent_hugepage")
if keep_freed_memory() and keep_freed_memory() and large_pages:
    maps = open("/proc/self/smaps", encoding="utf-8").read()
    heaps = re.findall(r"\[heap\]\n.*?Size: +(\d+) kB\n.*?VmFlags:([^\n]*)", maps, re.DOTALL)
    print(sum(int(size) for size, flags in heaps if " hg" in flags) if heaps else "")
"""


def test_the_heap_grows_once_in_large_pages():
    command = [sys.executable, "-c", ASK_TWICE]
    kilobytes = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if not kilobytes.strip():
        pytest.skip("no glibc on Linux, no large pages, or it does not tell of them")
    assert 500 <= int(kilobytes) / 1024 <= 600  # MiB: the second call adds nothing


@pytest.mark.slow
def test_a_comparison_has_both_sides_and_their_ratio():
    (row,) = compare(0.5, dtypes=("bf16",))
    assert row["rounds"] >= 5
    for figure in ("plain tokens/s", "lab tokens/s", "ratio"):
        middle, low, high = row[figure]
        assert 0 < low <= middle <= high
