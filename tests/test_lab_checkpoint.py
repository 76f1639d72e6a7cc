"""A checkpoint is whole or refused in a sentence."""

from dataclasses import replace

import pytest
import torch

from tests.test_lab_train import RECIPE, SHAPE, TEXT, one_thread, quiet_train
from utils.lab import GPT, load_checkpoint, save_checkpoint, text_from_files

pytestmark = pytest.mark.usefixtures(one_thread.__name__)
STATE = {"weights": torch.arange(1000.0), "step": 3, "names": ["a", "b"]}


@pytest.fixture
def file(tmp_path):
    save_checkpoint(tmp_path / "run.ckpt", STATE)
    return tmp_path / "run.ckpt"


def test_what_is_saved_is_loaded(file):
    loaded = load_checkpoint(file)
    assert torch.equal(loaded.pop("weights"), STATE["weights"])
    assert loaded == {"step": 3, "names": ["a", "b"]}
    assert [p.name for p in file.parent.iterdir()] == ["run.ckpt"]


@pytest.mark.parametrize("keep", [0, 1, 10, 26, 40, 57, 58, 59, 1000, -1])
def test_cut_short_anywhere_is_refused(file, keep):
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"run\.ckpt was cut short or altered.*Delete it"):
        load_checkpoint(file)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_one_altered_bit_is_refused(file, share):
    content = bytearray(file.read_bytes())
    content[max(30, int(share * len(content)))] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match="cut short or altered"):
        load_checkpoint(file)


def test_another_kind_of_file_and_no_file_are_told_apart(tmp_path):
    torch.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other\.pt is not a checkpoint of this course"):
        load_checkpoint(tmp_path / "other.pt")
    with pytest.raises(ValueError, match="There is no checkpoint at"):
        load_checkpoint(tmp_path / "nowhere")


def test_a_save_that_fails_leaves_the_one_before(file, monkeypatch):
    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr("utils.lab.checkpoint.os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(file, {"step": 4})
    assert load_checkpoint(file)["step"] == 3
    assert [p.name for p in file.parent.iterdir()] == ["run.ckpt"]


def test_training_refuses_a_damaged_checkpoint_and_one_of_another_run(tmp_path):
    file = tmp_path / "run.ckpt"
    quiet_train(GPT(SHAPE), checkpoint=file)
    for name, value, options in (
        ("peak_lr", 0.5, {"recipe": replace(RECIPE, peak_lr=0.5)}),
        ("dtype", "bf16", {"recipe": replace(RECIPE, dtype="bf16")}),
    ):
        with pytest.raises(ValueError, match=rf"another run: its {name} is .*here it is {value!r}"):
            quiet_train(GPT(SHAPE), checkpoint=file, **options)
    with pytest.raises(ValueError, match="another run: its d_model is 32, here it is 64"):
        quiet_train(GPT(replace(SHAPE, d_model=64, head_dim=32, d_ff=256)), checkpoint=file)
    other = text_from_files({"a.py": b"x" * 99}, {"b.py": b"y" * 99}, "another text")
    with pytest.raises(ValueError, match="trained on the two files, not on the another text"):
        quiet_train(GPT(SHAPE), checkpoint=file, text=other)
    file.write_bytes(file.read_bytes()[:-7])
    untouched = GPT(SHAPE)
    with pytest.raises(ValueError, match="cut short or altered"):
        quiet_train(untouched, checkpoint=file)
    assert torch.equal(untouched.head.weight, GPT(SHAPE).head.weight)
    assert TEXT.name == "two files"
