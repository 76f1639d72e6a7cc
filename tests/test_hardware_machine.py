"""What a measured machine says of itself: numbers with their spread, noise, the best dtype."""

import dataclasses

import pytest

from utils.hardware.machine import Machine, Measured, summarise


def make(**changes) -> Machine:
    rate = Measured(2e11, 1.9e11, 2.1e11, "FLOP/s")
    machine = Machine(
        device="cpu",
        name="A CPU",
        matmul={"fp32": rate, "bf16": dataclasses.replace(rate, median=8e11, high=8.1e11)},
        matmul_size={"fp32": 1024, "bf16": 1024},
        copy=[
            (2**20, Measured(1e11, 1e11, 1e11, "B/s")),
            (2**30, Measured(4e10, 4e10, 4e10, "B/s")),
        ],
        launch=Measured(1e-6, 1e-6, 1.1e-6, "s"),
        caches={},
        remarks={"fp16": "Slow here."},
        identity={"cores": 2, "threads": 2},
        versions={},
        date="2026-01-02",
        load=None,
        seconds=1.0,
    )
    return dataclasses.replace(machine, **changes)


def test_every_number_of_the_summary_says_what_it_is():
    text = str(make(matmul={"bf16": Measured(8e11, 7.9e11, 8.1e11, "FLOP/s")}))
    lines = [line for line in text.splitlines() if line.startswith("  ") and "fp16" not in line]
    assert len(lines) == 5
    assert all("measured" in line for line in lines)
    assert "bf16 matmul                  800 GFLOP/s  measured (790 to 810)" in text
    assert "20 FLOP/byte" in text
    assert "fp16: Slow here." in text


def test_a_noisy_machine_says_so():
    quiet = make(matmul={"fp32": Measured(2e11, 1.9e11, 2.1e11, "FLOP/s")})
    assert quiet.noise == ""
    noisy = make(matmul={"fp32": Measured(2e11, 1e11, 2.1e11, "FLOP/s")})
    assert "Varied by more than 1.3 times between samples: fp32 matmul." in noisy.noise
    assert noisy.noise in str(noisy)
    assert "(100 to 210)" in str(noisy)


def test_the_best_dtype():
    def rates(**given):
        return make(matmul={key: Measured(v, v, v, "FLOP/s") for key, v in given.items()})

    assert rates(fp32=1e12, bf16=4e12).best_dtype == "bf16"
    assert rates(fp32=8e12, bf16=1e12, fp16=5e13).best_dtype == "fp16"  # a T4
    assert rates(fp32=6e13, bf16=7.0e14, fp16=7.2e14, fp8=1.4e15).best_dtype == "bf16"
    assert rates(fp32=1e11, bf16=5e10, fp16=2e8).best_dtype == "fp32"  # an older CPU


def test_summarise_keeps_the_median_and_the_spread():
    samples = [*range(100, 120), 1, 10**6]
    measured = summarise(samples, "s")
    assert (measured.low, measured.median, measured.high) == (101, 109.5, 118)
    assert not measured.noisy
    with pytest.raises(ValueError, match="samples"):
        summarise([], "s")
