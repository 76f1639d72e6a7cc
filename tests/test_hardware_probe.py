"""The probe, with tiny measurements: what it saves, when it measures again, what it says."""

import json
import threading

import pytest
from filelock import FileLock

from utils import files
from utils.hardware import load_machine, measures, probe, probing, system


@pytest.fixture
def said():
    return []


@pytest.fixture
def answers(tmp_path, monkeypatch):
    monkeypatch.setenv("FEED_THE_GPU_ANSWERS", str(tmp_path))
    return tmp_path


@pytest.fixture
def tiny(answers, monkeypatch):
    """A real probe of this machine's CPU, too short to mean anything. Counts its runs."""
    monkeypatch.setattr(measures, "MATMUL_SIZES", (32,))
    monkeypatch.setattr(measures, "copy_range", lambda device: (2**15, 2**17))
    for name in ("MATMUL_SECONDS", "COPY_SECONDS", "LAUNCH_SECONDS"):
        monkeypatch.setattr(probing, name, 0.0)
    monkeypatch.setattr(probing, "ROUNDS", 1)
    monkeypatch.setattr(probing, "pick_device", lambda progress=print: "cpu")
    monkeypatch.setattr(system, "load", lambda: 0.1)
    runs = []
    real = probing.measure
    monkeypatch.setattr(probing, "measure", lambda *args: (runs.append(args), real(*args))[1])
    return runs


def test_the_probe_measures_saves_and_remembers(tiny, answers, said):
    machine = probe(progress=said.append)
    assert machine.device == "cpu"
    assert set(machine.matmul) == {"fp32", "bf16", "fp16"}
    assert [size for size, _ in machine.copy] == [2**15, 2**16, 2**17]
    assert machine.bytes_per_s == machine.copy[-1][1].median
    assert machine.ridge_point("fp32") == machine.peak("fp32") / machine.bytes_per_s
    assert machine.versions["torch"] and machine.identity["cores"] >= 1
    assert len(said) >= 5
    assert load_machine() == machine
    assert probe(progress=said.append) == machine
    assert len(tiny) == 1
    probe(force=True, progress=said.append)
    assert len(tiny) == 2
    assert not list(answers.rglob("*.part"))


@pytest.mark.parametrize("key", ["python", "torch", "triton", "name", "cores", "threads"])
def test_another_machine_or_version_measures_again(tiny, answers, said, key):
    probe(progress=said.append)
    file = answers / "machine.json"
    saved = json.loads(file.read_text(encoding="utf-8"))
    part = "identity" if key in saved["identity"] else "versions"
    saved[part][key] = "other"
    file.write_text(json.dumps(saved), encoding="utf-8")
    assert load_machine() is None
    probe(progress=said.append)
    assert len(tiny) == 2
    assert any(f"because {key} was other and is " in line for line in said)
    assert load_machine() is not None


def test_a_busy_measurement_is_repeated_once_it_is_quiet(tiny, said, monkeypatch):
    monkeypatch.setattr(system, "load", lambda: 2.0)
    machine = probe(progress=said.append)
    assert "Other programs were running (2.0 per core)" in machine.noise
    probe(progress=said.append)
    assert len(tiny) == 1, "still busy: measuring again would be no better"
    monkeypatch.setattr(system, "load", lambda: 0.1)
    probe(progress=said.append)
    probe(progress=said.append)
    assert len(tiny) == 2


@pytest.mark.parametrize(
    "content",
    ['{"format": 1, "dev', "[]", "null", '{"format": 1}', "\x00\x00", '{"format": 1, "copy": 3}'],
)
def test_a_damaged_file_is_set_aside_and_named(tiny, answers, said, content):
    for number in (1, 2):
        (answers / "machine.json").write_text(content, encoding="utf-8")
        probe(progress=said.append)
        assert f"It is now machine.damaged-{number}.json" in "\n".join(said)
        aside = answers / f"machine.damaged-{number}.json"
        assert aside.read_text(encoding="utf-8") == content
    assert load_machine() is not None


def test_a_file_with_impossible_numbers_is_damaged(tiny, answers, said):
    probe(progress=said.append)
    saved = json.loads((answers / "machine.json").read_text(encoding="utf-8"))
    saved["launch"]["median"] = float("nan")
    (answers / "machine.json").write_text(json.dumps(saved), encoding="utf-8")
    assert load_machine(progress=said.append) is None
    assert (answers / "machine.damaged-1.json").exists()


def test_nothing_saved_is_none(answers):
    assert load_machine() is None


def test_a_full_disk_costs_the_file_and_not_the_result(tiny, answers, said, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    assert probe(progress=said.append).matmul
    assert any("could not be saved" in line for line in said)
    assert not list(answers.rglob("*.part"))


def test_a_dtype_that_fails_is_a_remark(tiny, said, monkeypatch):
    real = measures.matmul

    def no_fp16(dtype, device, n):
        if dtype == "fp16":
            raise RuntimeError("not implemented for 'Half'\nand a long trace")
        return real(dtype, device, n)

    monkeypatch.setattr(measures, "matmul", no_fp16)
    machine = probe(progress=said.append)
    assert machine.remarks["fp16"] == "Not measured: not implemented for 'Half'"
    with pytest.raises(ValueError, match=r"dtype='fp16' was not measured .*not implemented"):
        machine.peak("fp16")


def test_the_readers_precision_setting_is_left_alone(tiny, said):
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        probe(progress=said.append)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_slow_dtype_stops_at_the_smallest_size(monkeypatch):
    asked = []
    monkeypatch.setattr(measures, "matmul", lambda dtype, device, n: asked.append(n))
    monkeypatch.setattr(measures, "time_samples", lambda call, repeats: [0.05, 0.06])
    assert measures.best_matmul_size("fp16", "cpu") == measures.MATMUL_SIZES[0]
    assert asked == [measures.MATMUL_SIZES[0]]


def test_a_busy_machine_gets_fewer_rounds(monkeypatch):
    now = iter([13.0, 13.0, 13.0])
    monkeypatch.setattr(probing.time, "perf_counter", lambda: next(now))
    assert len(list(probing._rounds(0.0))) == 1
    monkeypatch.setattr(probing.time, "perf_counter", lambda: 5.0)
    assert len(list(probing._rounds(0.0))) == probing.ROUNDS


def test_the_fastest_size_is_chosen_by_its_least_disturbed_sample(monkeypatch):
    seconds = {128: [1e-4], 256: [1e-4, 9.0], 512: [1.0]}
    monkeypatch.setattr(measures, "matmul", lambda dtype, device, n: n)
    monkeypatch.setattr(measures, "time_samples", lambda call, repeats: seconds[call])
    assert measures.best_matmul_size("fp32", "cpu") == 256


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_product_is_of_random_numbers(dtype):
    product = measures.matmul(dtype, "cpu", 64)()
    assert product.shape == (64, 64)
    assert product.std() > 1


@pytest.mark.parametrize("dtype", ["int8", "fp8"])
def test_the_gpu_only_products_are_called_rightly(dtype, monkeypatch):
    """Both also run on a CPU, slowly: their result against the product of the same numbers."""
    import torch

    torch.manual_seed(1)
    operands = []
    name = {"int8": "_int_mm", "fp8": "_scaled_mm"}[dtype]
    real = getattr(torch, name)
    monkeypatch.setattr(
        torch, name, lambda a, b, **more: (operands.append((a, b)), real(a, b, **more))[1]
    )
    product = measures.matmul(dtype, "cpu", 64)()
    [(a, b)] = operands
    assert a.dtype == b.dtype == measures.torch_dtype(dtype)
    expected = a.float() @ b.float()
    assert (product.float() - expected).norm() <= 0.01 * expected.norm()


def test_a_second_notebook_waits_for_the_first(tiny, answers, said):
    with FileLock(answers / "machine.lock"):
        speaking = threading.Event()
        waiting = threading.Thread(
            target=probe, kwargs={"progress": lambda line: (said.append(line), speaking.set())}
        )
        waiting.start()
        assert speaking.wait(60) and "Another notebook is measuring" in said[0]
        assert waiting.is_alive() and not tiny
    waiting.join(60)
    assert len(tiny) == 1


def test_a_copy_moves_what_it_says(monkeypatch):
    monkeypatch.setattr(measures, "copy_range", lambda device: (2**15, 2**17))
    for size, call in measures.copies("cpu"):
        target = call()
        assert 2 * target.numel() * target.element_size() == size
        assert target.std() > 0.5


def test_copies_leave_room_in_a_small_memory(monkeypatch):
    monkeypatch.setattr(system, "memory_bytes", lambda: 2 * 2**30)
    assert measures.copy_range("cpu") == (32 * 2**10, 2**28)
    monkeypatch.setattr(system, "memory_bytes", lambda: None)
    assert measures.copy_range("cpu") == (32 * 2**10, 2**29)


@pytest.mark.slow
def test_a_real_probe(answers, said):
    machine = probe(progress=said.append)
    assert machine.copy[-1][0] > machine.copy[0][0] * 100
    assert machine.peak(machine.best_dtype) > 1e9
