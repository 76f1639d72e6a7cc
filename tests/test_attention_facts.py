"""Published figures on attention that the course repeats, against what it counts."""

import csv
import math

import pytest
import torch
import torch.nn.functional as F

from utils import ROOT
from utils.exercises.namespace import solution
from utils.hardware import accelerator
from utils.meter import meter

with open(ROOT / "tests" / "data" / "flash_attention.csv", encoding="utf-8", newline="") as _file:
    FACT = {row["item"]: float(row["value"]) for row in csv.DictReader(_file)}

SEQ_LEN, HEAD_DIM = int(FACT["seq_len"]), int(FACT["head_dim"])
ALL_HEADS = int(FACT["batch"] * FACT["heads"])


def tensors(*, dtype=torch.float32, grad=False):
    shape = 1, 1, SEQ_LEN, HEAD_DIM
    return [torch.randn(shape, dtype=dtype, requires_grad=grad) for _ in "qkv"]


def standard(scale_scores, dropout):
    """Bytes of one head, forward and backward, one PyTorch operator a step."""
    q, k, v = tensors(dtype=torch.bfloat16, grad=True)
    hidden = torch.ones(SEQ_LEN, SEQ_LEN, dtype=torch.bool).triu(1)
    root = math.sqrt(HEAD_DIM)
    with meter() as m:
        scores = (q if scale_scores else q / root) @ k.transpose(-2, -1)
        scores = scores / root if scale_scores else scores
        weights = F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        if dropout:
            weights, _ = torch.native_dropout(weights, 0.1, True)
        (weights @ v).sum().backward()
    return m.bytes


def test_the_published_bytes_lie_between_two_ways_to_write_standard_attention():
    fewest, most = standard(False, False) * ALL_HEADS, standard(True, True) * ALL_HEADS
    assert fewest < FACT["standard bytes"] * 1e9 < most


def test_tiles_move_fewer_bytes_than_the_paper_counts_for_both_passes():
    hbm_bytes = solution("04.hbm_bytes")
    block_q, block_k = int(FACT["query block"]), int(FACT["key block"])
    forward = hbm_bytes(SEQ_LEN, HEAD_DIM, 2, block_q, block_k, True) * ALL_HEADS
    assert forward < FACT["flash bytes"] * 1e9
    assert FACT["standard bytes"] / FACT["flash bytes"] == pytest.approx(9.2, rel=0.01)


def test_the_papers_blocks_fill_its_chip():
    """Four arrays of head_dim columns (q, k, v, out) and no more than M elements."""
    block = math.ceil(FACT["chip elements"] / (4 * HEAD_DIM))
    assert block == FACT["key block"]
    assert min(block, HEAD_DIM) == FACT["query block"]


def test_bytes_grow_with_the_square_and_shrink_with_the_tile():
    """Theorem 2: bytes are of the order N² d² / M, and a query tile is M / 4d."""
    hbm_bytes = solution("04.hbm_bytes")
    base = hbm_bytes(65_536, 64, 2, 128, 128)
    assert hbm_bytes(131_072, 64, 2, 128, 128) / base == pytest.approx(4, rel=0.01)
    assert base / hbm_bytes(65_536, 64, 2, 256, 128) == pytest.approx(2, rel=0.01)
    assert hbm_bytes(65_536, 128, 2, 64, 128) / base == pytest.approx(4, rel=0.01)


def test_backward_costs_two_and_a_half_times_forward_when_scores_are_made_again():
    q, k, v = tensors()
    with meter() as forward:
        solution("04.attention")(q, k, v, False)
    with meter() as backward:
        solution("04.attention_backward")(q, k, v, v, False)
    assert forward.flops == 4 * SEQ_LEN**2 * HEAD_DIM
    assert backward.flops / forward.flops == FACT["backward over forward"]


def test_tiles_save_memory_and_only_a_chip_that_keeps_them_saves_bytes():
    """Where nothing stays on the chip, tiles move what plain attention moves."""
    tiled, hbm_bytes = solution("04.tiled_attention"), solution("04.hbm_bytes")
    q, k, v = tensors()
    with meter() as plain:
        solution("04.attention")(q, k, v, False)
    with meter() as nothing_kept:
        tiled(q, k, v, False, 128, 128)
    formula = hbm_bytes(SEQ_LEN, HEAD_DIM, 4, 128, 128)
    assert formula < plain.bytes / 5
    assert nothing_kept.bytes > 5 * formula  # tiles alone save nothing
    assert nothing_kept.peak_bytes < plain.peak_bytes / 5  # but memory


@pytest.mark.parametrize(
    ("item", "card"),
    [("FlashAttention-2 on A100", "A100 80GB SXM"), ("FlashAttention-3 on H100", "H100 SXM")],
)
def test_published_rates_are_the_published_share_of_the_peak(item, card):
    share = FACT[item] * 1e12 / accelerator(card).peak("bf16")
    assert 100 * share == pytest.approx(FACT[f"{item} share"], abs=1)


def test_an_a100_does_sixteen_times_as_much_in_its_matrix_units():
    a100 = accelerator("A100 80GB SXM")
    assert a100.peak("bf16") / a100.peak("fp32") == FACT["A100 matrix units over the rest"]
