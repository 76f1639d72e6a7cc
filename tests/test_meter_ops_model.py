"""The meter's live memory, and its modelled time."""

import gc

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from utils.hardware import accelerator
from utils.hardware.machine import Machine, Measured
from utils.meter import meter

H100 = accelerator("H100 SXM")


@pytest.mark.parametrize("fake", [False, True])
def test_peak_counts_storages_once_and_frees_them(fake):
    with FakeTensorMode() if fake else torch.no_grad():
        x = torch.ones(1000)
        with meter() as m:
            a = x + 1
            b = a.view(10, 100).t()  # a view of a: no bytes of its own
            del a
            c = b * 2  # x, a's storage, c: the peak
            del b
            c.exp()  # x, c, its result
            del c
            x.zero_()
    assert m.existing_bytes == 4000
    assert m.peak_bytes == 12000
    assert m.peak_at in ("mul", "exp")


def test_existing_tensors_count_from_the_start():
    early, late = torch.ones(1000), torch.ones(5000)
    with meter() as m:
        early.exp()  # late is there too, though not used yet
        late.sum()
    assert m.existing_bytes == 24000
    assert m.peak_bytes == 24000 + 4000
    assert m.peak_at == "exp"


def test_peak_sees_what_backward_keeps_and_recomputing_gives_back():
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(6)))

    def peak(run):
        x = torch.randn(1024, 8)
        gc.collect()
        with meter() as m:
            run(x).sum().backward()
        return m.peak_bytes - m.existing_bytes

    def recompute(x):
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return x

    one = 4 * 1024 * 8
    kept, recomputed = peak(layers), peak(recompute)
    # Each layer keeps tanh's output, which is also the next layer's input; addmm's is let go.
    assert 6 * one < kept < 10 * one
    with torch.no_grad(), meter() as m:
        layers(torch.randn(1024, 8))
    # The first input, the layer's input, addmm's output, tanh's output.
    assert m.peak_bytes - m.existing_bytes == 4 * one
    assert recomputed <= kept


def test_after_the_with_nothing_is_followed():
    with meter() as m:
        x = torch.ones(1000) + 1
    peak, calls = m.peak_bytes, m.total.calls
    y = x.exp()
    del x, y
    assert (m.peak_bytes, m.total.calls) == (peak, calls)


def test_time_of_one_copy_and_one_product():
    with FakeTensorMode(), meter("H100 SXM") as m:
        a = torch.empty(8192, 8192, dtype=torch.bfloat16)
        a.clone()
        a @ a
    copy = 2 * 2 * 8192**2 / H100.bytes_per_s
    product = 2 * 8192**3 / H100.peak("bf16")
    time = m.time(launch_seconds=1e-6)
    assert time.parts["memory"] == pytest.approx(copy)
    assert time.parts["matrix units"] == pytest.approx(product)
    assert time.parts["launch"] == pytest.approx(2e-6)
    assert time.seconds == pytest.approx(copy + product + 2e-6) and time.bound_by == "matrix units"
    first, second = m.timeline(launch_seconds=1e-6)
    assert (first["name"], first["bound_by"], first["start"]) == ("clone", "memory", 0)
    assert (second["name"], second["bound_by"]) == ("mm", "matrix units")
    assert second["start"] == first["seconds"]
    assert first["seconds"] + second["seconds"] == pytest.approx(time.seconds)
    slower = m.time("A100 80GB SXM")
    assert slower.accelerator == "A100 80GB SXM" and slower.seconds > time.seconds


def test_small_operators_are_bound_by_launches():
    with meter("H100 SXM") as m:
        torch.ones(8).add_(1)
    assert m.time().bound_by == "launch"
    assert m.timeline()[0]["bound_by"] == "launch"


def test_this_machine_as_measured_is_an_accelerator_too():
    def said(number, unit):
        return Measured(number, number, number, unit)

    machine = Machine(
        device="cpu", name="a machine", matmul={"fp32": said(1e11, "FLOP/s")},
        matmul_size={"fp32": 512}, copy=[(2**20, said(9e10, "B/s")), (2**30, said(2e10, "B/s"))],
        launch=said(1e-6, "s"), caches={}, remarks={}, identity={}, versions={}, date="today",
        load=None, seconds=1.0,
    )  # fmt: skip
    a = torch.randn(100, 100)
    with meter(machine) as m:
        a @ a
    assert m.time().parts["matrix units"] == pytest.approx(2 * 100**3 / 1e11)
    assert m.time().parts["launch"] == 1e-6


def test_tf32_where_products_may_use_it():
    a = torch.randn(8, 8)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        with meter() as m:
            a @ a + 1
    finally:
        torch.set_float32_matmul_precision(before)
    assert {row.name: row.dtype for row in m.rows()} == {"mm": "tf32", "add": "fp32"}


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda m: m.time(), "accelerator is None"),
        (lambda m: m.timeline(), "accelerator is None"),
        (lambda m: m.time("H1000"), "H1000"),
        (lambda m: m.time("H100 SXM", launch_seconds=-1), "launch_seconds is -1"),
        (lambda m: m.time("T4"), "T4 has no native bf16"),
        (lambda m: meter("H1000").__enter__(), "H1000"),
    ],
)
def test_wrong_arguments(act, said):
    with meter() as m:
        torch.ones(4, 4, dtype=torch.bfloat16) @ torch.ones(4, 4, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=said):
        act(m)
