"""The meter on whole programs: FLOPs as PyTorch counts them, nesting, errors, the report."""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from utils import ROOT
from utils.arithmetic import ModelShape, forward_flops, training_flops
from utils.meter import meter


def attention(causal=True, kv_heads=4):
    q = torch.randn(2, 4, 16, 8, requires_grad=True)
    k, v = (torch.randn(2, kv_heads, 16, 8, requires_grad=True) for _ in "kv")
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=kv_heads != 4)
    y.sum().backward()


def convolution():
    nn.Conv2d(3, 8, 3, stride=2, groups=1)(torch.randn(2, 3, 15, 15)).square().sum().backward()


def mlp():
    net = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.LayerNorm(30), nn.Linear(30, 5))
    F.cross_entropy(net(torch.randn(7, 20)), torch.zeros(7, dtype=torch.long)).backward()


def recomputed():
    net = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 20))
    x = torch.randn(7, 20, requires_grad=True)
    checkpoint(net, x, use_reentrant=False).sum().backward()


def batched():
    torch.einsum("bij,bjk->bik", torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    torch.baddbmm(torch.zeros(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6))


def encoder():
    nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)(torch.randn(2, 5, 16)).sum().backward()


@pytest.mark.parametrize("program", [convolution, mlp, recomputed, batched, encoder])
def test_flops_agree_with_pytorchs_counter(program):
    with FlopCounterMode(display=False) as counter, meter() as m:
        program()
    assert m.flops == counter.get_total_flops() > 0


def test_inference_mode_takes_compositions_apart_and_counts_once():
    def run():
        x, weight = torch.randn(2, 7, 20), torch.randn(30, 20)
        with FlopCounterMode(display=False) as counter, meter() as m:
            F.linear(x, weight).softmax(-1).reshape(-1, 3)
        assert m.flops == counter.get_total_flops()
        return m

    with torch.no_grad():
        plain = run()
    with torch.inference_mode():
        m = run()
    assert m.flops == 2 * 14 * 20 * 30
    moving = [{row.name for row in each.rows() if row.bytes} for each in (m, plain)]
    assert moving[0] == moving[1] == {"mm", "_softmax"}
    assert (m.bytes, m.launches) == (plain.bytes, plain.launches)


def test_attention_on_a_cpu_counts_what_pytorch_counts_on_a_gpu():
    # Forward: two products of all pairs. Backward: five, as PyTorch's formula for GPUs has it.
    product = 2 * 2 * 4 * 16 * 16 * 8
    for causal, kv_heads in [(True, 4), (False, 4), (True, 2)]:
        with meter() as m:
            attention(causal, kv_heads)
        assert m.flops == 7 * product


def test_attention_written_out_is_the_same_flops_and_more_bytes():
    q, k, v = torch.randn(3, 1, 2, 64, 8).unbind()
    with meter() as fused:
        F.scaled_dot_product_attention(q, k, v)
    with meter() as written_out:
        ((q @ k.mT) / 8**0.5).softmax(-1) @ v
    assert written_out.flops == fused.flops
    assert written_out.bytes > 5 * fused.bytes


def test_products_that_pytorchs_counter_leaves_out():
    a, x = torch.randn(30, 20), torch.randn(20)
    with meter() as m:
        a @ x
        x @ x
        torch._int_mm(torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 8, dtype=torch.int8))
    assert m.flops == 2 * 30 * 20 + 2 * 20 + 2 * 32 * 16 * 8


def test_vector_flops():
    x = torch.randn(100, 10)
    with meter() as m:
        x + x
        x.sum()
        x.softmax(1)
        x.gt(0)
        x.clone()
        x.to(torch.bfloat16)
    assert (m.flops, m.total.vector_flops) == (0, 1000 + 1000 + 5000)


def test_training_a_gpt_is_the_arithmetics_flops():
    from tests.test_arithmetic_torch import Net

    shape = ModelShape(2, 48, 4, 101, seq_len=32)
    net, ids = Net(shape), torch.randint(101, (2, 20))
    with meter() as m:
        net(ids)
    assert m.flops == forward_flops(shape, seq_len=20, batch=2)
    with meter() as m:
        net(ids).sum().backward()
    assert m.flops == training_flops(shape, seq_len=20, batch=2)


# --- nesting, errors, report ---------------------------------------------------------------------


def test_nested_meters_both_count():
    a = torch.randn(8, 8)
    with meter() as outer:
        a @ a
        with FakeTensorMode(allow_non_fake_inputs=True), meter() as inner:
            a @ a
        a @ a
    assert (inner.flops, outer.flops) == (2 * 8**3, 3 * 2 * 8**3)


def test_an_error_inside_comes_out_and_ends_the_meter():
    with pytest.raises(RuntimeError, match="size"), meter() as m:
        torch.ones(3) + torch.ones(4)
    calls = m.total.calls
    torch.ones(3)
    assert m.total.calls == calls


def test_fake_and_real_runs_count_the_same():
    def counts():
        net = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.LayerNorm(30), nn.Linear(30, 5))
        x = torch.randn(7, 20)
        with meter() as m:
            net(x).sum().backward()
        return m

    real = counts()
    with FakeTensorMode():
        fake = counts()
    assert fake.rows() == real.rows()
    assert (fake.peak_bytes, fake.existing_bytes) == (real.peak_bytes, real.existing_bytes)


def test_report():
    with meter("H100 SXM") as m:
        mlp()
    report = json.loads(json.dumps(m.as_dict()))
    assert report["total"]["flops"] == m.flops == sum(row["flops"] for row in report["rows"])
    assert report["total"]["bytes"] == m.bytes == sum(row["bytes"] for row in report["rows"])
    assert report["total"]["seconds"] == pytest.approx(m.time().seconds)
    assert sum(row["seconds"] for row in report["rows"]) == pytest.approx(m.time().seconds)
    assert report["accelerator"] == "H100 SXM"
    table = m.table()
    assert table[-1]["op"] == "total" and table[-1]["calls"] == m.total.calls
    text = str(m)
    assert "modelled on H100 SXM" in text and "Not modelled:" in text
    for line in table:
        assert line["op"] in text
    with meter() as empty:
        pass
    assert empty.rows() == [] and empty.intensity == 0 and "total" in str(empty)
    assert empty.as_dict()["accelerator"] is None


def test_importing_the_meter_loads_no_torch():
    code = "import utils.meter, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
