"""What this machine can do today, with or without PyTorch, as doctor reports it."""

import json
import sys

import pytest

from utils.hardware import system, today


def test_features_are_known_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # import torch raises ImportError
    monkeypatch.setattr(today, "_ask_nvidia_smi", lambda: ("Tesla T4", "7.5"))
    facts = today.features()
    assert facts["device"] == ""
    assert facts["torch_error"]
    assert (facts["gpu"], facts["native_bf16"], facts["native_fp8"]) == ("Tesla T4", False, False)
    assert facts["cores"] >= 1 and facts["memory_gb"] > 0 and facts["free_disk_gb"] > 0


def test_features_of_this_machine():
    facts = today.features()
    assert facts["python"].startswith("3.")
    assert facts["device"] in ("cpu", "cuda", "mps")
    assert facts["native_bf16"] in (True, False, None)
    json.dumps(facts)


@pytest.mark.parametrize(
    ("system_name", "reader"), [("Linux", "_cpu_linux"), ("Darwin", "_cpu_macos")]
)
def test_the_cpu_has_a_name_even_where_the_system_will_not_tell(monkeypatch, system_name, reader):
    monkeypatch.setattr(system.platform, "system", lambda: system_name)
    monkeypatch.setattr(system, reader, lambda: "Some  CPU(R)\n")
    assert system.cpu_name() == "Some CPU(R)"

    def refuses():
        raise OSError

    monkeypatch.setattr(system, reader, refuses)
    assert system.cpu_name()
