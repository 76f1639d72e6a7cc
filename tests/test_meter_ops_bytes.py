"""The meter's bytes, on operators whose traffic is known by hand. fp32 unless said: 4 bytes."""

import pytest
import torch
import torch.nn.functional as F

from utils.meter import meter

A, B = torch.randn(64, 32), torch.randn(32, 48)
TABLE = torch.randn(1000, 16)
IDS = torch.arange(10)
FLAT = torch.randn(4096)


def square():
    return torch.randn(64, 64)


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


# What to run, the operator, elements of fp32 read, elements written, other bytes read and written.
CASES = {
    "add": (lambda: A + 1.5, "add", 2048, 2048),
    "add two": (lambda: A + A.flip(0), "add", 4096, 2048),
    "the same tensor twice": (lambda: A * A, "mul", 2048, 2048),
    "add a row": (lambda: A + B[:, 0], "add", 2048 + 32, 2048),
    "in place": (lambda: square().add_(1), "add_", 4096, 4096),
    "in place, two": (lambda: square().mul_(A[:, :1]), "mul_", 4096 + 64, 4096),
    "to an out argument": (lambda: torch.add(A, 1, out=torch.empty(64, 32)), "add", 2048, 2048),
    "sum": (lambda: A.sum(), "sum", 2048, 1),
    "sum of rows": (lambda: A.sum(1), "sum", 2048, 64),
    "product": (lambda: A @ B, "mm", 2048 + 1536, 64 * 48),
    "product of a transpose": (lambda: A.t() @ A[:, :8], "mm", 2048 + 512, 32 * 8),
    "linear": (lambda: F.linear(A, B.t(), B[0]), "addmm", 2048 + 1536 + 48, 64 * 48),
    "matrix times vector": (lambda: A @ B[:, 0], "mv", 2048 + 32, 64),
    "clone": (lambda: A.clone(), "clone", 2048, 2048),
    "clone of an expanded row": (lambda: A[:1].expand(64, 32).clone(), "clone", 32, 2048),
    "clone of every other element": (lambda: FLAT[::2].clone(), "clone", 2048, 2048),
    "clone of overlapping windows": (lambda: FLAT.unfold(0, 8, 1).clone(), "clone", 4096, 4089 * 8),
    "copy": (lambda: square().copy_(square()), "copy_", 4096, 4096),
    "copy a column to all": (lambda: square().copy_(A[:, :1]), "copy_", 64, 4096),
    "fill": (lambda: square().zero_(), "zero_", 0, 4096),
    "random": (lambda: square().normal_(), "normal_", 0, 4096),
    "zeros": (lambda: torch.zeros(64, 64), "zeros", 0, 4096),
    "zeros like": (lambda: torch.zeros_like(A), "zeros_like", 0, 2048),
    "empty": (lambda: torch.empty(64, 64), "empty", 0, 0),
    "empty like": (lambda: torch.empty_like(A), "empty_like", 0, 0),
    "cat": (lambda: torch.cat([A, A[:4]]), "cat", 2048 + 128, 2048 + 128),
    "where": (lambda: torch.where(A > 0, A, 0.0), "where", 2048, 2048, 2048 + 4, 0),
    "greater": (lambda: A > 0, "gt", 2048, 0, 0, 2048),
    "to bf16": (lambda: A.to(torch.bfloat16), "_to_copy", 2048, 0, 0, 4096),
    "softmax": (lambda: A.softmax(1), "_softmax", 2048, 2048),
    "log softmax": (lambda: A.log_softmax(1), "_log_softmax", 2048, 2048),
    "layer norm": (
        lambda: F.layer_norm(A, (32,), B[:, 0], B[:, 1]),
        "native_layer_norm", 2048 + 64, 2048 + 64 + 64,
    ),
    "embedding": (lambda: F.embedding(IDS, TABLE), "embedding", 160, 160, 80, 0),
    "embedding of more ids than rows": (
        lambda: F.embedding(IDS.repeat(7), TABLE[:20]), "embedding", 320, 1120, 560, 0,
    ),
    "index select": (lambda: TABLE.index_select(0, IDS), "index_select", 160, 160, 80, 0),
    "index": (lambda: TABLE[IDS], "index", 160, 160, 80, 0),
    "index with a mask": (lambda: FLAT[:64][A[:, 0] > 9], "index", 0, 0, 64, 0),
    "gather": (lambda: TABLE.gather(0, IDS[:, None]), "gather", 10, 10, 80, 0),
    "dropout": (
        lambda: torch.native_dropout(A, 0.5, True), "native_dropout", 2048, 2048, 0, 2048,
    ),
    "scatter": (
        lambda: square().scatter_(0, IDS[:, None], A[:16, :1]), "scatter_", 10, 10, 80, 0,
    ),
    "scatter add": (
        lambda: square().scatter_add_(0, IDS[:, None], A[:16, :1]), "scatter_add_", 20, 10, 80, 0,
    ),
    "scatter to a new one": (
        lambda: A.scatter(0, IDS[:, None], 1.0), "scatter", 2048, 2048 + 10, 80, 0,
    ),
    "index add": (
        lambda: torch.zeros(1000, 16).index_add_(0, IDS, A[:10, :16]),
        "index_add_", 160 + 160, 160, 80, 0,
    ),
    "index put": (
        lambda: torch.zeros(1000, 16).index_put_((IDS,), A[:10, :16]),
        "index_put_", 160, 160, 80, 0,
    ),
    "index put of one number": (
        lambda: torch.zeros(1000, 16).index_put_((IDS,), A[0, 0]), "index_put_", 1, 160, 80, 0,
    ),
    "index put that adds": (
        lambda: torch.zeros(1000, 16).index_put_((IDS,), A[:10, :16], accumulate=True),
        "index_put_", 320, 160, 80, 0,
    ),
    "a slice backward": (
        lambda: leaf(100, 8)[:25].sum().backward(), "slice_backward", 1, 800 + 200,
    ),
    "embedding backward": (
        lambda: F.embedding(IDS, leaf(1000, 16)).mul(A[:10, :16]).sum().backward(),
        "embedding_dense_backward", 160 + 160, 16000 + 160, 80, 0,
    ),
    "cross entropy": (
        lambda: F.cross_entropy(A, IDS.repeat(7)[:64]), "nll_loss_forward", 64, 2, 512, 0,
    ),
    "cross entropy backward": (
        lambda: F.cross_entropy(leaf(64, 32), IDS.repeat(7)[:64]).backward(),
        "nll_loss_backward", 2, 2048 + 64, 512, 0,
    ),
    "attention": (
        lambda: F.scaled_dot_product_attention(*torch.randn(3, 2, 4, 16, 8).unbind()),
        "_scaled_dot_product_flash_attention_for_cpu", 3 * 1024, 1024 + 128,
    ),
    "a sum over many": (
        lambda: torch._foreach_add_([square(), square()], 1.0), "_foreach_add_", 8192, 8192,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bytes_of_one_operator(case):
    run, name, read, written, *others = CASES[case]
    more_read, more_written = others or (0, 0)
    with meter() as m:
        run()
    (row,) = [row for row in m.rows() if row.name == name]
    assert (row.bytes_read, row.bytes_written) == (4 * read + more_read, 4 * written + more_written)
    assert row.bytes == row.bytes_read + row.bytes_written


@pytest.mark.parametrize(
    "view",
    [
        lambda: A.t(),
        lambda: A.view(-1),
        lambda: A.reshape(32, 64),
        lambda: A[3],
        lambda: A[1:9, ::2],
        lambda: A.expand(3, 64, 32),
        lambda: A.split(8),
        lambda: A.unsqueeze(0).squeeze(0),
        lambda: A.detach(),
        lambda: A.as_strided((3,), (1,)),
        lambda: torch.ops.aten._unsafe_view(A, (2048,)),
        lambda: A.clone().unsqueeze_(0).squeeze_(0),
    ],
)
def test_views_are_free(view):
    with meter() as m:
        view()
    free = [row for row in m.rows() if row.name != "clone"]
    assert free and all(row.view and row.launches == row.bytes == 0 for row in free)


def test_a_reshape_that_must_copy_is_not_free():
    with meter() as m:
        A.t().reshape(-1)
    assert m.bytes == 2 * 4 * 2048 and m.launches == 1


def test_the_fused_optimizer_reads_gradients_and_does_not_write_them():
    weight = leaf(1000)
    weight.grad = torch.ones(1000)
    optimizer = torch.optim.AdamW([weight], fused=True)
    optimizer.step()
    with meter() as m:
        optimizer.step()
    (row,) = [row for row in m.rows() if row.name == "_fused_adamw_"]
    # The weight, two moments and the gradient come in, the first three go out; one step counter.
    assert (row.bytes_read, row.bytes_written) == (4 * 4000 + 4, 4 * 3000)


def test_kinds_of_operators():
    with meter() as m:
        (square() @ square()).add_(1).t()
    kinds = {row.name: row.kind for row in m.rows()}
    assert kinds == {"randn": "", "mm": "matmul", "add_": "in place", "t": "view"}


def test_zeros_then_a_part_is_two_launches():
    with meter() as m:
        leaf(100, 8)[:25].sum().backward()
    assert {row.name: row.launches for row in m.rows()}["slice_backward"] == 2
