"""The meter on a Llama of 70 billion parameters that is never there: fake tensors only."""

import json
import subprocess
import sys
import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from utils import ROOT
from utils.arithmetic import attention_flops, count_parameters, forward_flops, model
from utils.meter import meter

TOKENS = 512


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape, d, kv = shape, shape.d_model, shape.n_kv_head * shape.head_dim
        self.norm_1, self.norm_2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.q, self.k, self.v = (nn.Linear(d, n, bias=False) for n in (d, kv, kv))
        self.out = nn.Linear(d, d, bias=False)
        self.gate, self.up = (nn.Linear(d, shape.d_ff, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.d_ff, d, bias=False)

    def heads(self, x):
        return x.unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)

    def forward(self, x, cos, sin):
        y = self.norm_1(x)
        q, k, v = self.heads(self.q(y)), self.heads(self.k(y)), self.heads(self.v(y))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Llama(nn.Module):
    """The model that a shape of Llama's family describes."""

    def __init__(self, shape):
        super().__init__()
        self.tokens = nn.Embedding(shape.vocab_size, shape.d_model)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.n_layer))
        self.norm = nn.RMSNorm(shape.d_model)
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False)

    def forward(self, ids):
        half = self.blocks[0].shape.head_dim // 2
        angle = torch.outer(torch.arange(ids.shape[1]), 10000.0 ** -(torch.arange(half) / half))
        dtype = self.norm.weight.dtype
        cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def build(name, dtype=torch.bfloat16):
    """A model on fake tensors. The dtype is set first: fake parameters cannot be converted."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return Llama(model(name))
    finally:
        torch.set_default_dtype(before)


def measure_70b():
    """What one forward pass of Llama 2 70B costs to meter, and what the meter says."""
    start = time.perf_counter()
    with FakeTensorMode():
        net, ids = build("Llama 2 70B"), torch.zeros(1, TOKENS, dtype=torch.long)
        with torch.no_grad(), meter("H100 SXM") as m:
            net(ids)
    return m.as_dict() | {"build_and_forward_s": time.perf_counter() - start}


# In a process of its own, for its memory: this one holds what other tests used.
ALONE = """
import json, sys
from tests.test_meter_ops_llama import measure_70b
report = measure_70b()
try:
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    report["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
except ImportError:
    pass
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report():
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_70b_fits_in_2_gib(report):
    if "rss" not in report:
        pytest.skip("this system does not report a process's memory")
    assert report["rss"] < 2 * 2**30


def test_70b_flops_are_the_arithmetics(report):
    shape = model("Llama 2 70B")
    counted = report["total"]["flops"]
    assert counted == forward_flops(shape, seq_len=TOKENS)
    rule = 2 * count_parameters(shape) * TOKENS + attention_flops(shape, seq_len=TOKENS)
    assert counted == pytest.approx(rule, rel=5e-3)


def test_70b_reads_its_weights_once_and_holds_them(report):
    weights = 2 * count_parameters(model("Llama 2 70B"))
    assert report["existing_bytes"] == weights + 8 * TOKENS
    # The embedding is looked up, not read: 512 of 32,000 rows.
    products = sum(row["bytes_read"] for row in report["rows"] if row["matmul"])
    assert weights * 0.99 < products < weights * 1.1
    assert weights < report["peak_bytes"] < weights * 1.01


def test_70b_on_one_h100(report):
    total = report["total"]
    assert report["accelerator"] == "H100 SXM" and total["bound_by"] == "matrix units"
    (mm,) = [row for row in report["rows"] if row["name"] == "mm"]
    least = mm["flops"] / 989.4e12
    assert least == pytest.approx(2 * 69e9 * TOKENS / 989.4e12, rel=0.01)
    assert least < mm["seconds"] < 1.1 * least


def test_one_token_is_bound_by_memory():
    with FakeTensorMode():
        net, ids = build("Llama 3.1 8B"), torch.zeros(1, 1, dtype=torch.long)
        with torch.no_grad(), meter("H100 SXM") as m:
            net(ids)
    time = m.time(launch_seconds=0)
    weights = 2 * count_parameters(model("Llama 3.1 8B"))
    assert time.bound_by == "memory"
    assert time.seconds == pytest.approx(weights / 3.35e12, rel=0.1)
    assert m.time(launch_seconds=1e-3).bound_by == "launch"
