"""doctor: facts for people and for programs, and a way out for each thing that is wrong."""

import argparse
import json

import pytest

from utils.command import doctor

LAPTOP = {
    "python": "3.12.1", "torch": "2.13.0", "torch_error": "", "triton": "3.7.1",
    "system": "Linux x86_64", "cpu": "A CPU", "cores": 4, "memory_gb": 16.0, "free_disk_gb": 90.0,
    "device": "cpu", "gpu": "", "capability": "", "gpu_memory_gb": None,
    "native_bf16": False, "native_fp8": False,
}  # fmt: skip
GPU = {"device": "cuda", "gpu": "A GPU", "capability": "8.9", "gpu_memory_gb": 24.0}


@pytest.fixture
def machine(monkeypatch):
    """Makes doctor meet a laptop that differs in what is given."""

    def meet(browser="chromium", **other):
        monkeypatch.setattr(doctor, "features", lambda: LAPTOP | other)
        monkeypatch.setattr(doctor, "find_browser", lambda: browser)
        return doctor.gather()

    return meet


def test_a_good_machine_has_nothing_to_fix(machine):
    facts = machine()
    assert facts["ready"] and facts["fix"] == []
    assert doctor.text(facts).endswith("To fix\n  nothing")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"torch": "", "device": "", "triton": ""}, "Nothing is installed yet. Run: python3"),
        ({"torch_error": "no libc", "device": ""}, "PyTorch does not start: no libc. Remove .venv"),
        ({"gpu": "Old GPU"}, "cannot use your Old GPU"),
        ({"triton": ""}, "Triton is missing"),
        ({"free_disk_gb": 0.5}, "The disk has 0.5 GB free"),
        ({"memory_gb": 2.0}, "2.0 GB of memory is little"),
        ({"browser": None}, "sudo apt install chromium"),
    ],
)
def test_each_trouble_has_its_sentence(machine, other, says):
    (sentence,) = machine(**other)["fix"]
    assert says in sentence


def test_no_triton_is_no_trouble_where_there_is_none_to_have(machine):
    assert machine(triton="", system="Darwin arm64")["fix"] == []


@pytest.mark.parametrize(
    ("other", "here"),
    [
        ({}, "measured on this CPU; what needs a GPU is modelled"),
        (GPU, "measured on A GPU; other accelerators are modelled"),
        ({"device": "", "torch": ""}, "does not run yet"),
    ],
)
def test_chapters_say_what_they_do_here(machine, other, here):
    facts = machine(**other)
    assert here in doctor.what_happens_here(facts)
    assert all(here in chapter["here"] for chapter in facts["chapters"])


def test_a_gpu_is_described(machine):
    assert doctor.gpu(machine(**GPU)) == "A GPU, capability 8.9, 24.0 GB"


def test_programs_get_json_and_an_exit_code(machine, capsys):
    machine(device="", torch="")
    assert doctor.main(argparse.Namespace(json=True)) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["ready"] is False and facts["python"] == "3.12.1"
    machine()
    assert doctor.main(argparse.Namespace(json=False)) == 0
    assert "native bf16   no" in capsys.readouterr().out
