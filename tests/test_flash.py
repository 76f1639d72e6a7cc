"""Chapter 08's FlashAttention: that it trains, differentiates and counts as the chapter says."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("triton")

import torch
import torch.nn.functional as F

from utils import lab
from utils.exercises import _ch08_flash_reference as reference
from utils.exercises.namespace import solution

TINY = dataclasses.replace(
    lab.CONFIGS["1M"],
    n_layer=1, n_head=2, n_kv_head=2, head_dim=16, d_model=32, d_ff=128, seq_len=64,
)  # fmt: skip


@pytest.fixture(scope="module")
def flash():
    return solution("08.flash_attention")


@pytest.fixture(scope="module")
def text():
    words = " ".join(f"line {i} of {i * i}" for i in range(400)).encode()
    return lab.text_from_files({"a": words}, {"b": words[:2000]}, "numbers")


def losses(text, attention, shape=TINY):
    recipe = lab.Recipe(steps=16, batch=2, warmup_steps=1, peak_lr=1e-2)
    trainer = lab.Trainer(lab.GPT(shape, attention), text, recipe)
    return np.array([float(trainer.step()[0].detach()) for _ in range(recipe.steps)])


def test_a_gpt_trains_to_the_same_losses_as_with_the_frameworks_attention(flash, text):
    theirs = losses(text, lab.scaled_dot_product_attention)
    ours = losses(text, flash)
    assert theirs[-1] < theirs[0] - 0.5
    assert np.abs(ours - theirs).max() < 2e-5


def test_the_losses_would_show_a_gradient_that_is_missing(text):
    fused = lab.scaled_dot_product_attention
    theirs = losses(text, fused)
    for wrong in (
        lambda q, k, v, causal: fused(q, k.detach(), v, causal),
        lambda q, k, v, causal: fused(q, k, v.detach(), causal),
    ):
        assert np.abs(losses(text, wrong) - theirs).max() > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("seq_len", "causal"), [(70, True), (45, False)])
def test_gradients_are_those_of_the_plain_formula_in_float64(flash, dtype, seq_len, causal):
    """70 positions of 64 numbers are several tiles, in each dtype another number of them."""
    made = [torch.randn(1, heads, seq_len, 64).to(dtype) for heads in (2, 1, 1, 2)]
    leaves = [x.clone().requires_grad_() for x in made[:3]]
    exact = [x.double().requires_grad_() for x in made[:3]]
    out = flash(*leaves, causal)
    plain = F.scaled_dot_product_attention(*exact, is_causal=causal, enable_gqa=True)
    ours = out, *torch.autograd.grad(out, leaves, made[3])
    wanted = plain, *torch.autograd.grad(plain, exact, made[3].double())
    bound = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    for mine, theirs in zip(ours, wanted, strict=True):
        assert mine.dtype == dtype
        assert (mine.double() - theirs).norm() < bound * theirs.norm()


def test_gpt_with_views_of_grouped_heads(flash, text):
    """Rotary positions and fewer key heads: q, k, v come in other layouts."""
    shape = dataclasses.replace(TINY, n_kv_head=1, positions="rope")
    theirs = losses(text, lab.scaled_dot_product_attention, shape)
    assert np.abs(losses(text, flash, shape) - theirs).max() < 2e-5


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("blocks", [(16, 16), (32, 16), (16, 64)])
def test_counted_bytes_are_the_formulas_to_the_byte(causal, blocks):
    from utils.meter import measure

    block_q, block_k = blocks
    q, d_out = np.random.default_rng(0).standard_normal((2, 1, 4, 56, 16), dtype=np.float32)
    k = q[:, :2].copy()
    t = {name: torch.from_numpy(x.copy()) for name, x in {"q": q, "k": k, "d_out": d_out}.items()}
    v, out, lse = t["k"].clone(), torch.empty_like(t["q"]), torch.empty(1, 4, 56)
    sizes = {"GROUP": 2, "HEAD_DIM": 16, "BLOCK_Q": block_q, "BLOCK_K": block_k, "CAUSAL": causal}
    forward = measure(
        solution("08.flash_forward_kernel"),
        (-(-56 // block_q), 4), t["q"], t["k"], v, out, lse, 56, 0.25, **sizes,
    )  # fmt: skip
    case = q, k, causal, block_q, block_k
    assert forward.ok and forward.requested_bytes == reference.forward_bytes(*case)
    grads = [torch.empty_like(x) for x in (t["q"], t["k"], v)]
    given = t["q"], t["k"], v, t["d_out"], lse, (t["d_out"] * out).sum(-1), *grads, 56, 0.25
    products = []
    for keys, count in ((True, reference.key_gradient_bytes),
                        (False, reference.query_gradient_bytes)):  # fmt: skip
        grid = (-(-56 // (block_k if keys else block_q)), 2 if keys else 4)
        kernel = solution("08.flash_backward_kernels")
        report = measure(kernel, grid, *given, **sizes, KEYS=keys)
        assert report.ok and report.requested_bytes == count(*case)
        products.append(report.dot_flops)
    if not causal:
        assert products == [2 * forward.dot_flops, 1.5 * forward.dot_flops]


def test_reading_tiles_that_are_hidden_is_beyond_the_limit_of_bytes():
    """With a tenth to spare, one tile too many for each query tile must still be too many."""
    q, k = np.empty((1, 2, 40, 16), np.float32), np.empty((1, 1, 40, 16), np.float32)
    for count in (reference.forward_bytes, reference.query_gradient_bytes,
                  reference.key_gradient_bytes):  # fmt: skip
        skipped, all_of_them = (count(q, k, causal, 16, 16) for causal in (True, False))
        assert all_of_them > reference.SLACK * skipped


def test_nothing_of_the_square_of_the_length_is_kept(flash):
    kept = {}
    for seq_len in (64, 128):
        leaves = [torch.randn(1, 1, seq_len, 16, requires_grad=True) for _ in "qkv"]
        sizes = {}

        def pack(tensor, sizes=sizes):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            out = flash(*leaves, True)
        kept[seq_len] = sum(sizes.values())
        assert out.requires_grad
    assert kept[128] == 2 * kept[64] == 4 * 128 * (4 * 16 + 1)


@pytest.mark.parametrize("keys", [True, False])
def test_only_one_branch_written_is_said(keys):
    """A reader fills the two branches one after the other."""
    from utils.exercises._ch08_flash import FLASH
    from utils.exercises.grade import call_here, grade
    from utils.exercises.namespace import fresh, run_text, solution_text

    text = solution_text("08.flash_backward_kernels")
    branch = f"    if KEYS{' != True' if keys else ''}:\n        raise NotImplementedError("
    begin = text.index("    column = tl.arange")
    text = text[:begin] + branch + '"your turn")\n' + text[begin:]
    names = fresh("08")
    run_text(text, "<half>", names)
    exercise = FLASH[1]
    verdict = grade(exercise, call_here(exercise, names[exercise.name]), 1)
    assert verdict.status == "not yet"
    assert f"KEYS={not keys} is still to be written" in verdict.lines[1]
