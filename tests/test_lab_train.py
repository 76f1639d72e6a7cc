"""Training: reproducible, resumable to the bit, stoppable, and the same however a batch is cut."""

import math
import os
import signal
from dataclasses import replace

import pytest
import torch

from utils.arithmetic import ModelShape, mfu_from_throughput, training_flops
from utils.lab import (
    CONFIGS,
    GPT,
    History,
    Recipe,
    Trainer,
    evaluate,
    generate,
    get_batch,
    learning_rate,
    load_checkpoint,
    make_optimizer,
    next_token_loss,
    stdlib_text,
    text_from_files,
    train,
)

SHAPE = ModelShape(2, 32, 2, 256, seq_len=16)
RECIPE = Recipe(steps=12, batch=4, warmup_steps=3)
WORDS = b"def f(x):\n    return x + 1\n" * 20
TEXT = text_from_files({"a.py": WORDS, "b.py": WORDS[::-1]}, {"c.py": WORDS}, "two files")


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny tensors: a second thread would only wait for the first."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def quiet_train(model, recipe=RECIPE, text=TEXT, **options) -> History:
    return train(model, text, recipe, report=lambda h: None, say=lambda s: None, **options)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def trained(recipe=RECIPE, **options):
    model = GPT(SHAPE)
    return model, quiet_train(model, recipe, **options)


# --- the schedule and the optimizer ------------------------------------------------------------


def test_learning_rate_warms_up_and_falls_to_its_share():
    run = {"steps": 110, "peak_lr": 2.0, "warmup_steps": 10, "final_share": 0.1}
    rates = [learning_rate(step, **run) for step in range(110)]
    assert rates[:3] == pytest.approx([0.2, 0.4, 0.6])
    assert max(rates) == rates[10] == 2.0
    assert rates[60] == pytest.approx(1.1)  # half way down: the mean of 2.0 and 0.2
    assert 0.2 < rates[-1] < 0.201
    assert rates[10:] == sorted(rates[10:], reverse=True)
    with pytest.raises(ValueError, match="step is 110; allowed: 0 to 109"):
        learning_rate(110, **run)


def test_decay_is_for_matrices_only():
    model = GPT(SHAPE)
    names = {id(p): name for name, p in model.named_parameters()}
    decayed, spared = make_optimizer(model, peak_lr=1.0, weight_decay=0.3).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)
    assert len(decayed["params"]) + len(spared["params"]) == len(names)
    assert all("norm" in (n := names[id(p)]) or n.endswith("bias") for p in spared["params"])
    assert not any("norm" in (n := names[id(p)]) or "bias" in n for p in decayed["params"])


def test_one_step_is_adamw_written_out():
    recipe = replace(RECIPE, clip=0.05, weight_decay=0.2, peak_lr=0.01)
    model = GPT(SHAPE)
    before = {name: p.detach().double().clone() for name, p in model.named_parameters()}
    x, y = get_batch(TEXT.train, 4, 16, torch.Generator().manual_seed(recipe.seed))
    next_token_loss(model(x), y).backward()
    grads = {name: p.grad.double().clone() for name, p in model.named_parameters()}
    model.zero_grad()
    _, norm = Trainer(model, TEXT, recipe).step()
    expected_norm = math.sqrt(sum(g.square().sum().item() for g in grads.values()))
    assert norm.item() == pytest.approx(expected_norm, rel=1e-5) and expected_norm > 0.05
    lr = 0.01 / 3
    for name, p in model.named_parameters():
        g = grads[name] * 0.05 / expected_norm
        w = before[name] * (1 - lr * (0.2 if p.ndim >= 2 else 0.0))
        # first step: both averages, corrected for their start at 0, are g and g squared
        expected = w - lr * g / (g.abs() + 1e-8)
        assert torch.allclose(p.double(), expected, atol=2e-6), name


# --- the same run again ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_seed_gives_the_same_run(dtype):
    recipe = replace(RECIPE, dtype=dtype)
    (one, history), (two, again) = trained(recipe), trained(recipe)
    assert torch.equal(weights(one), weights(two))
    assert (history.losses, history.val_losses) == (again.losses, again.val_losses)
    other, _ = trained(replace(recipe, seed=1))
    assert not torch.equal(weights(one), weights(other))


def test_accumulation_equals_the_big_batch():
    models = [GPT(SHAPE).double() for _ in range(3)]
    for model, accumulate in zip(models, (1, 2, 4), strict=True):
        trainer = Trainer(model, TEXT, replace(RECIPE, accumulate=accumulate))
        results = [trainer.step() for _ in range(5)]
        if accumulate == 1:
            first = results
        for (loss, norm), (expected, its_norm) in zip(results, first, strict=True):
            assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
            assert norm.item() == pytest.approx(its_norm.item(), rel=1e-10)
    for model in models[1:]:
        assert torch.allclose(weights(model), weights(models[0]), atol=1e-9)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_resume_equals_an_uninterrupted_run_to_the_bit(tmp_path, dtype):
    recipe = replace(RECIPE, dtype=dtype)
    whole, history = trained(recipe, every=4)
    file = tmp_path / "run.ckpt"

    def stop(h):
        if h.rows[-1].step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    first = GPT(SHAPE)
    part = train(first, TEXT, recipe, checkpoint=file, every=4, report=stop, say=lambda s: None)
    assert part.interrupted and part.rows[-1].step == 5
    second = GPT(SHAPE, seed=77)  # other weights: all must come from the checkpoint
    rest = quiet_train(second, recipe, checkpoint=file, every=4)
    assert torch.equal(weights(whole), weights(second))
    assert rest.rows[-1].val_loss == history.rows[-1].val_loss
    assert rest.steps == [4, 5, 8, 12] and not rest.interrupted
    assert rest.seconds > part.seconds


def test_a_finished_run_is_read_and_not_trained_again(tmp_path):
    model, history = trained(checkpoint=tmp_path / "run.ckpt")
    again = GPT(SHAPE, seed=9)
    read = quiet_train(again, checkpoint=tmp_path / "run.ckpt")
    assert torch.equal(weights(model), weights(again))
    assert read.rows == history.rows


# --- stopping ----------------------------------------------------------------------------------


def interrupt_in_step(trainer_step, at):
    """Trainer.step that is interrupted in its middle, the step after `at`."""

    def step(self):
        if self.done == at:
            os.kill(os.getpid(), signal.SIGINT)
        return trainer_step(self)

    return step


def test_an_interrupted_run_ends_its_step_keeps_its_checkpoint_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "step", interrupt_in_step(Trainer.step, at=6))
    before = signal.getsignal(signal.SIGINT)
    file, said = tmp_path / "run.ckpt", []
    model = GPT(SHAPE)
    history = train(model, TEXT, RECIPE, checkpoint=file, report=lambda h: None, say=said.append)
    assert history.interrupted and history.rows[-1].step == 7
    assert said == [
        f"Stopped after step 7 of 12. The run is kept in {file}: run this again to go on."
    ]
    state = load_checkpoint(file)
    assert state["done"] == 7
    assert torch.equal(state["model"]["head.weight"], model.head.weight)
    assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_a_checkpoint_it_says_what_is_left(monkeypatch):
    monkeypatch.setattr(Trainer, "step", interrupt_in_step(Trainer.step, at=2))
    said = []
    train(GPT(SHAPE), TEXT, RECIPE, report=lambda h: None, say=said.append)
    assert said == [
        "Stopped after step 3 of 12. The model keeps what it has learned; "
        "no checkpoint was asked for."
    ]


def test_a_second_interrupt_stops_at_once_and_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    def step(self, trainer_step=Trainer.step):
        if self.done == 6:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return trainer_step(self)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(KeyboardInterrupt):
        trained(checkpoint=tmp_path / "run.ckpt", checkpoint_every=4)
    assert load_checkpoint(tmp_path / "run.ckpt")["done"] == 4


# --- what a run tells --------------------------------------------------------------------------


def test_rows_hold_mean_losses_held_out_losses_and_mfu():
    model = GPT(SHAPE)
    every_step = quiet_train(model, every=1).losses
    history = trained(every=5, validate_every=10, peak_flops_per_s=1e12, peak="a peak")[1]
    assert history.steps == [5, 10, 12] and history.val_steps == [10, 12]
    assert history.losses[1] == pytest.approx(sum(every_step[5:10]) / 5, rel=1e-6)
    assert history.losses[2] == pytest.approx(sum(every_step[10:12]) / 2, rel=1e-6)
    assert history.val_losses[-1] == evaluate(model, TEXT.val)
    flops = training_flops(SHAPE, seq_len=16, tokens=1)
    for row in history.rows:
        assert row.mfu == mfu_from_throughput(row.tokens_per_s, flops, 1e12)
    tokens = [5 * 4 * 16, 5 * 4 * 16, 2 * 4 * 16]
    seconds = sum(n / row.tokens_per_s for n, row in zip(tokens, history.rows, strict=True))
    assert history.seconds == pytest.approx(seconds)


def test_the_line_of_text_names_the_peak(capsys):
    train(GPT(SHAPE), TEXT, RECIPE, every=6, peak_flops_per_s=1e9, peak="a slow chip")
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("step  6 of 12 · loss 5.") and "held out" not in first
    assert "held out" in last and last.endswith("% of a slow chip") and "tokens/s" in last


def test_it_learns_and_writes():
    model = GPT(SHAPE)
    assert evaluate(model, TEXT.val) == pytest.approx(math.log(256), abs=0.1)
    recipe = Recipe(steps=100, batch=8, peak_lr=1e-2, warmup_steps=10)
    forwards_only = text_from_files({"a.py": WORDS}, {"c.py": WORDS}, "one file")
    history = quiet_train(model, recipe, forwards_only)
    assert history.val_losses[-1] < 1.0
    text = generate(model, "def f", 40, temperature=0.3, seed=1)
    assert text == generate(model, "def f", 40, temperature=0.3, seed=1)
    assert text.startswith("def f") and len(text.encode()) >= 45
    assert text != generate(model, "def f", 40, temperature=3.0, seed=1)


def test_wrong_arguments_are_named():
    for wrong in ("steps", "batch", "accumulate"):
        with pytest.raises(ValueError, match=f"{wrong} is 0"):
            Recipe(**{wrong: 0})
    with pytest.raises(ValueError, match="accumulate is 3; allowed: a divisor of batch=16"):
        Recipe(accumulate=3)
    with pytest.raises(ValueError, match="dtype is 'fp64'"):
        Recipe(dtype="fp64")
    with pytest.raises(ValueError, match="seq_len is 17"):
        Trainer(GPT(SHAPE), TEXT, Recipe(seq_len=17))
    with pytest.raises(ValueError, match="peak is ''"):
        trained(peak_flops_per_s=1e12)
    with pytest.raises(ValueError, match="every is 0"):
        trained(every=0)
    with pytest.raises(ValueError, match="temperature is 0"):
        generate(GPT(SHAPE), "a", temperature=0)


@pytest.mark.slow
def test_a_thousand_steps_go_below_two_nats():
    """The course's promise for the 1M model: from about 5.5 to under 2.0 on held-out files."""
    torch.set_num_threads(os.cpu_count() or 1)
    text, model = stdlib_text(), GPT(CONFIGS["1M"])
    # Knowing nothing is ln 256 nats a byte; a tied head begins a little below, because it favours
    # the byte it has just read, and source code repeats bytes.
    assert evaluate(model, text.val) == pytest.approx(math.log(256), abs=0.3)
    history = quiet_train(model, Recipe(), text)
    assert history.val_losses[-1] < 2.0
