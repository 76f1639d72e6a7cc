"""kernel[grid](...) on CPU tensors: safe, counted, autotuned by the model."""

import pytest

pytest.importorskip("triton")

import torch

from utils.meter.on_paper import KernelError, launches, tl, triton, with_tail


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


FACTOR = tl.constexpr(2)


@triton.jit
def scale(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) * FACTOR)


def grid(values):
    return (triton.cdiv(values["n"], values["BLOCK"]),)


def test_a_launch_changes_its_output():
    x, out = torch.randn(1000), torch.zeros(1000)
    double[grid](x, out, 1000, BLOCK=256)
    assert torch.equal(out, 2 * x)


def test_what_a_kernel_names_is_looked_up_at_each_launch(monkeypatch):
    """In a notebook the cell that defines it may run again."""
    x = torch.ones(16)
    scale[(1,)](x, BLOCK=16)
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(3))
    scale[(1,)](x, BLOCK=16)
    assert torch.equal(x, torch.full((16,), 6.0))


def test_a_bad_address_is_one_sentence():
    x, out = torch.randn(100), torch.zeros(100)
    with pytest.raises(KernelError, match="index 100 of x_ptr is out of bounds") as caught:
        double[grid](x, out, 101, BLOCK=64)
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_wrong_launch_is_one_sentence():
    x = torch.randn(100)
    with pytest.raises(KernelError, match=r"takes \(x_ptr, out_ptr, n, BLOCK\)"):
        double[(1,)](x, BLOCK=64)
    with pytest.raises(KernelError, match="needs a grid"):
        double(x, x, 100, BLOCK=64)
    with pytest.raises(KernelError, match="x_ptr is a numpy array"):
        double[(1,)](x.numpy(), x, 100, BLOCK=64)


def test_launches_are_gathered():
    x, out = torch.randn(100), torch.zeros(100)
    with launches() as reports:
        double[grid](x, out, 100, BLOCK=64)
        double[grid](x, out, 50, BLOCK=64)
    double[grid](x, out, 100, BLOCK=64)
    assert [report.requested_bytes for report in reports] == [800, 400]


def test_a_with_inside_a_with_ends_alone():
    x, out = torch.randn(100), torch.zeros(100)
    with launches() as outer:
        with launches() as inner:
            double[grid](x, out, 100, BLOCK=64)
        double[grid](x, out, 50, BLOCK=64)
    assert [report.requested_bytes for report in inner] == [800]
    assert [report.requested_bytes for report in outer] == [800, 400]


def test_a_failed_launch_is_gathered_too():
    x, out = torch.randn(100), torch.zeros(100)
    with launches() as reports, pytest.raises(KernelError):
        double[grid](x, out, 101, BLOCK=64)
    assert [report.ok for report in reports] == [False]


def test_autotune_takes_the_least_modelled_time_and_keeps_the_output_of_one_launch():
    configs = [triton.Config({"BLOCK": block}) for block in (32, 4096)]
    tuned = triton.autotune(configs=configs, key=["n"])(double)
    x = torch.randn(8192)
    before = x.clone()
    tuned[grid](x, x, 8192)  # in place: each try must leave x as it was
    assert torch.equal(x, 2 * before)
    assert tuned.best_config.kwargs == {"BLOCK": 32}  # 256 programs fill 108 cores, 2 do not
    assert set(tuned.configs_timings) == set(configs)
    with launches() as reports:
        double[grid](x, x, 8192, BLOCK=32)
    milliseconds, *_ = tuned.configs_timings[configs[0]]
    assert milliseconds == pytest.approx(1000 * with_tail(reports[0]))


def test_autotune_passes_over_a_configuration_that_fails_and_asks_once_for_each_key():
    configs = [triton.Config({"BLOCK": block}) for block in (33, 64)]  # 33 is no power of two
    tuned = triton.autotune(configs=configs, key=["n"])(double)
    x, out = torch.randn(100), torch.zeros(100)
    with launches() as reports:
        tuned[grid](x, out, 100)
        tuned[grid](x, out, 100)
    assert torch.equal(out, 2 * x)
    assert tuned.best_config.kwargs == {"BLOCK": 64}
    assert len(reports) == 2  # tries are not launches


def test_a_tail_costs_a_whole_wave():
    x = torch.randn(109 * 64)
    with launches() as reports:
        double[(109,)](x, x.clone(), x.numel(), BLOCK=64)
        double[(108,)](x, x.clone(), x.numel(), BLOCK=64)
    with_one_more, full = reports
    assert (with_one_more.waves, full.waves) == (2, 1)
    assert with_tail(full) == pytest.approx(full.modelled.seconds)
    assert with_tail(with_one_more) > with_one_more.modelled.seconds
